#pragma once

#include <coroutine>

#include "lib/loop/event_loop.h"

namespace weft {

// Wakes coroutines that wait for something to change. They look for themselves whether it is what they waited
// for:
//
//   while (!ready()) if (!co_await changed.wait(loop, deadline)) co_return false;
//
// Whoever is woken may wait again, notify again, or end others that wait. Thread: loop thread only. Who still
// waits when it is destroyed is not resumed any more, except by its deadline.
class Signal {
  // Waiters form a ring, so that one that goes away leaves it wherever it stands.
  struct Link {
    Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    ~Link() { unlink(); }

    void unlink() {
      previous->next = next;
      next->previous = previous;
      previous = next = this;
    }
    void put_before(Link& other) {
      previous = other.previous;
      next = &other;
      previous->next = this;
      other.previous = this;
    }

    Link* previous = this;
    Link* next = this;
  };

 public:
  class [[nodiscard]] Waiter : private Link {
   public:
    Waiter(Signal& signal, EventLoop& loop, Instant deadline)
        : signal_(signal), loop_(loop), deadline_(deadline) {}

    [[nodiscard]] bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      handle_ = handle;
      put_before(signal_.waiters_);
      if (deadline_ == kNever) return;
      timer_.set(loop_, deadline_, [this] {
        unlink();
        handle_.resume();
      });
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

  // Resumes everyone who waits now, in order of waiting; who waits again during this call is left for the
  // next. This object may be destroyed meanwhile.
  void notify() {
    Link woken;
    woken.put_before(waiters_);
    waiters_.unlink();
    while (woken.next != &woken) {
      auto* waiter = static_cast<Waiter*>(woken.next);
      waiter->unlink();
      waiter->notified_ = true;
      waiter->timer_.cancel();
      waiter->handle_.resume();
    }
  }

 private:
  Link waiters_;
};

}  // namespace weft
