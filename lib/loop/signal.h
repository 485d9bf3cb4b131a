#pragma once

#include <algorithm>
#include <coroutine>
#include <vector>

#include "lib/loop/event_loop.h"

namespace weft {

// Wakes coroutines that wait for something to change. They look for themselves whether it is what they waited
// for:
//
//   while (!ready()) if (!co_await changed.wait(loop, deadline)) co_return false;
//
// Thread: loop thread only. Outlives its waiters' frames or is destroyed with none waiting.
class Signal {
 public:
  class [[nodiscard]] Waiter {
   public:
    Waiter(Signal& signal, EventLoop& loop, Instant deadline)
        : signal_(signal), loop_(loop), deadline_(deadline) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() {
      std::replace(signal_.waiters_.begin(), signal_.waiters_.end(), this, static_cast<Waiter*>(nullptr));
    }

    [[nodiscard]] bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      handle_ = handle;
      signal_.waiters_.push_back(this);
      if (deadline_ != kNever) timer_.set(loop_, deadline_, [this] { handle_.resume(); });
    }
    // Whether it was a notification, and not the deadline.
    [[nodiscard]] bool await_resume() const { return notified_; }

   private:
    friend class Signal;
    Signal& signal_;
    EventLoop& loop_;
    Instant deadline_;
    std::coroutine_handle<> handle_;
    Timer timer_;
    bool notified_ = false;
  };

  [[nodiscard]] Waiter wait(EventLoop& loop, Instant deadline = kNever) {
    return Waiter(*this, loop, deadline);
  }

  // Resumes everyone who waits now; who waits again during this call is left for the next.
  void notify() {
    const std::size_t count = waiters_.size();
    for (std::size_t i = 0; i < count; ++i) {
      Waiter* waiter = waiters_[i];
      if (waiter == nullptr) continue;
      waiters_[i] = nullptr;
      waiter->notified_ = true;
      waiter->timer_.cancel();
      waiter->handle_.resume();
    }
    std::erase(waiters_, nullptr);
  }

 private:
  std::vector<Waiter*> waiters_;
};

}  // namespace weft
