#pragma once

#include <memory>

#include "lib/base/unique_function.h"
#include "lib/runtime/runtime.h"

namespace weft {

struct UvRuntimeOptions {
  std::shared_ptr<LogSink> log;  // Null: plain lines on the console.
};

// The real world for a node: a libuv loop, sockets, entropy, the machine's state and a log.
//
// Real clocks, sockets and entropy are made here and nowhere else. What uses it is destroyed before it.
// Thread: of the thread that made it until run() is called; only stop() and the loop's post() may be called
// from others.
class UvRuntime {
 public:
  explicit UvRuntime(UvRuntimeOptions options = {});
  ~UvRuntime();
  UvRuntime(const UvRuntime&) = delete;
  UvRuntime& operator=(const UvRuntime&) = delete;

  [[nodiscard]] Runtime services();
  [[nodiscard]] EventLoop& loop();

  // Takes turns until stop().
  void run();
  void stop();
  // Once run() has returned on another thread: makes this thread the one that may destroy what uses it.
  void take_over();

  // As run(), and meanwhile SIGINT and SIGTERM are ours: the first calls `on_signal` (which sees to it that
  // stop() is called in the end; without one it is called at once), the second stops without waiting.
  // Gives 0, or 128 + the signal's number after a second one.
  int run_until_signal(UniqueFunction<void(int signal)> on_signal = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft
