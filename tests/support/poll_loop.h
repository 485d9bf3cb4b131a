#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lib/loop/event_loop.h"
#include "lib/net/poller.h"

namespace weft::test {

// A real EventLoop and Poller over poll(2), for tests of what needs a loop below lib/uv.
class PollLoop final : public EventLoop, public Poller {
 public:
  PollLoop();
  ~PollLoop() override;
  PollLoop(const PollLoop&) = delete;
  PollLoop& operator=(const PollLoop&) = delete;

  // Runs turns on this thread until `done` holds; false when that takes longer than `patience`.
  bool run_until(const std::function<bool()>& done,
                 std::chrono::milliseconds patience = std::chrono::seconds(20));
  // Runs turns until nothing that is due is left.
  void drain();

  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] std::int64_t wall_ms() const override;
  TimerId schedule(Instant when, Callback callback) override;
  void cancel(TimerId timer) override;
  void post(Callback callback) override;
  void defer(Callback callback) override { deferred_.push_back(std::move(callback)); }
  [[nodiscard]] bool is_current() const override;
  void run_blocking(Callback work, Callback done) override;

  [[nodiscard]] std::unique_ptr<Watch> watch(int descriptor, Handler& handler) override;

 private:
  struct Watched;
  class WatchHandle;

  bool turn(int wait_ms);  // Whether anything ran.
  void update_now();

  Instant now_{};
  std::thread::id thread_;
  int wake_fd_ = -1;
  std::map<std::pair<Instant, TimerId>, Callback> timers_;
  std::map<TimerId, Instant> timer_times_;
  TimerId timer_last_ = 0;
  std::vector<Callback> deferred_;
  std::vector<std::shared_ptr<Watched>> watched_;

  std::mutex mutex_;
  std::vector<Callback> posted_;
  std::condition_variable idle_;
  int workers_ = 0;
};

}  // namespace weft::test
