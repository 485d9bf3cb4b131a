#pragma once

#include <dirent.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/uv/uv_loop.h"
#include "lib/uv/uv_network.h"

namespace weft::test {

// A real loop and network for one test. Whatever is awaited must call wake() when it happens.
struct UvWorld {
  UvLoop loop;
  UvNetwork network{loop};

  void wake() { loop.stop(); }

  // Takes turns until `condition`; false when it did not come about in time.
  template <typename Condition>
  [[nodiscard]] bool await(Condition condition, Duration limit = std::chrono::seconds(10)) {
    bool late = false;
    Timer watchdog;
    watchdog.set(loop, loop.now() + limit, [&] {
      late = true;
      wake();
    });
    while (!condition() && !late) loop.run();
    return condition();
  }

  // Takes so many turns.
  void turn(int count = 1) {
    for (int i = 0; i < count; ++i) {
      loop.post([this] { wake(); });
      loop.run();
    }
  }
};

// Notes what a stream tells.
class StreamLog final : public Stream::Handler {
 public:
  explicit StreamLog(UvWorld& world) : world_(world) {}

  void on_data(BytesView bytes) override {
    data += bytes;
    if (during_data) during_data();
    world_.wake();
  }
  void on_closed(const Error& reason) override {
    closed = reason;
    if (during_close) during_close();
    world_.wake();
  }
  void on_writable() override {
    ++writable;
    world_.wake();
  }

  std::string data;
  std::optional<Error> closed;
  int writable = 0;
  UniqueFunction<void()> during_data;
  UniqueFunction<void()> during_close;

 private:
  UvWorld& world_;
};

[[nodiscard]] inline int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace weft::test
