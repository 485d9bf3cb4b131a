#pragma once

#include <utility>
#include <vector>

#include "lib/loop/event_loop.h"
#include "lib/uv/timer_queue.h"

namespace weft::test {

// A loop whose clock stands until it is advanced. Blocking work is not for it.
class ManualLoop final : public EventLoop {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] std::int64_t wall_ms() const override { return 0; }
  TimerId schedule(Instant when, Callback callback) override {
    return timers_.add(when, std::move(callback));
  }
  void cancel(TimerId timer) override { const Callback gone = timers_.cancel(timer); }
  void post(Callback callback) override { soon_.push_back(std::move(callback)); }
  void defer(Callback callback) override { soon_.push_back(std::move(callback)); }
  [[nodiscard]] bool is_current() const override { return true; }
  void run_blocking(Callback work, Callback done) override {
    work();
    post(std::move(done));
  }

  // Runs what is due, and all that follows from it.
  void settle() {
    do {
      for (std::vector<Callback> running = std::exchange(soon_, {}); Callback & callback : running)
        callback();
      timers_.run_due(now_);
    } while (!soon_.empty() || timers_.next() <= now_);
  }
  void advance(Duration step) {
    const Instant end = now_ + step;
    for (settle(); timers_.next() <= end; settle()) now_ = timers_.next();
    now_ = end;
    settle();
  }

 private:
  Instant now_{std::chrono::hours(1)};
  TimerQueue timers_;
  std::vector<Callback> soon_;
};

}  // namespace weft::test
