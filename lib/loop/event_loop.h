#pragma once

#include <cstdint>
#include <utility>

#include "lib/base/unique_function.h"
#include "lib/time/clock.h"

namespace weft {

// One thread's turn-taking: timers, work posted from elsewhere, and whatever sockets its Network waits on.
//
// Everything a node does happens on its loop's thread; only post() may be called from another one.
// Timers due at one instant run in the order they were made.
class EventLoop {
 public:
  using Callback = UniqueFunction<void()>;
  using TimerId = std::uint64_t;  // 0 is no timer.

  virtual ~EventLoop() = default;

  // Monotonic time. Constant within a turn.
  [[nodiscard]] virtual Instant now() const = 0;
  // Milliseconds since 1970, for what goes on the wire. May jump; never used to measure.
  [[nodiscard]] virtual std::int64_t wall_ms() const = 0;

  // Runs `callback` once at `when`, or in the next turn if that has passed.
  virtual TimerId schedule(Instant when, Callback callback) = 0;
  // Forgets a timer; one that has run or is unknown is no error.
  virtual void cancel(TimerId timer) = 0;

  // Runs `callback` on the loop's thread soon, in order of posting. From any thread. Callbacks still waiting
  // when the loop is closed are destroyed without running.
  virtual void post(Callback callback) = 0;
  // Runs `callback` at the end of this turn, before the loop waits again. Loop thread only.
  virtual void defer(Callback callback) = 0;
  [[nodiscard]] virtual bool is_current() const = 0;

  // Runs `work` on a worker thread, then `done` on the loop's thread.
  virtual void run_blocking(Callback work, Callback done) = 0;
};

// A timer that is cancelled when it goes out of scope. The loop outlives it.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;  // The scheduled closure points back here.
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  // Replaces what was set before. `callback` may set the timer again.
  void set(EventLoop& loop, Instant when, EventLoop::Callback callback) {
    cancel();
    loop_ = &loop;
    id_ = loop.schedule(when, [this, callback = std::move(callback)]() mutable {
      id_ = 0;
      callback();
    });
  }
  void set_after(EventLoop& loop, Duration delay, EventLoop::Callback callback) {
    set(loop, loop.now() + delay, std::move(callback));
  }
  void cancel() {
    if (id_ != 0) loop_->cancel(std::exchange(id_, 0));
  }
  [[nodiscard]] bool active() const { return id_ != 0; }

 private:
  EventLoop* loop_ = nullptr;
  EventLoop::TimerId id_ = 0;
};

}  // namespace weft
