#pragma once

#include <uv.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/loop/event_loop.h"
#include "lib/uv/timer_queue.h"
#include "lib/uv/uv_handle.h"

namespace weft {

// Something that is written out once a turn: it asks with UvLoop::flush_at_turn_end() and is called back.
class TurnEndFlush {
 public:
  // May destroy this and others of its kind.
  virtual void flush() = 0;

 protected:
  ~TurnEndFlush() = default;

 private:
  friend class UvLoop;
  bool queued_ = false;
};

// The EventLoop of real programs, over libuv.
//
// A turn is: wait; what sockets, timers and other threads brought; deferred callbacks; writes.
//
// Thread: belongs to the thread that made it, then to the one that called run() or take_over() last. Only
// post(), stop() and is_current() may be called from elsewhere. Sockets made on it must be gone before it is
// destroyed. Destroying it destroys all waiting callbacks unrun and waits for blocking work that is already
// running.
class UvLoop final : public EventLoop {
 public:
  UvLoop();
  ~UvLoop() override;
  UvLoop(const UvLoop&) = delete;
  UvLoop& operator=(const UvLoop&) = delete;

  // Takes turns until stop(). May be called again.
  void run();
  // Makes run() return after the present turn. A stop while the loop does not run ends the next run() at
  // once.
  void stop();
  // Makes the loop this thread's, once run() has returned on the other one: to destroy it, or to run it here.
  void take_over() { thread_ = std::this_thread::get_id(); }

  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::int64_t wall_ms() const override;
  TimerId schedule(Instant when, Callback callback) override;
  void cancel(TimerId timer) override;
  void post(Callback callback) override;
  void defer(Callback callback) override;
  [[nodiscard]] bool is_current() const override { return thread_ == std::this_thread::get_id(); }
  void run_blocking(Callback work, Callback done) override;

  // For lib/uv.
  [[nodiscard]] uv_loop_t* uv() { return &loop_; }
  void flush_at_turn_end(TurnEndFlush& flush);
  void forget_flush(TurnEndFlush& flush);
  // Does the flushes now rather than at the end of the turn. Not from inside a call that promised no upcall.
  void flush_now();
  // Where all sockets of this loop read into: kReadBytes, with kReadPadding behind. Valid during one upcall.
  [[nodiscard]] char* read_slab() { return read_slab_.get(); }
  static constexpr std::size_t kReadBytes = 64UL << 10;

 private:
  struct BlockingWork;

  void end_turn();
  void arm_timer();
  void run_posted();
  void run_deferred();
  void destroy_waiting();

  uv_loop_t loop_;
  HandlePtr<uv_timer_t> timer_;
  HandlePtr<uv_async_t> wake_up_;
  HandlePtr<uv_prepare_t> before_wait_;
  HandlePtr<uv_check_t> after_wait_;
  HandlePtr<uv_idle_t> no_wait_;  // Active while deferred callbacks are left: the loop must not wait.

  std::atomic<std::thread::id> thread_;
  mutable Instant now_{};
  mutable bool now_known_ = false;  // Within this turn.

  TimerQueue timers_;
  Instant armed_for_ = kNever;

  std::mutex posted_mutex_;
  std::vector<Callback> posted_;  // Guarded by posted_mutex_, as is closed_.
  bool closed_ = false;           // Written on the loop's thread alone, which may read it without the lock.
  std::vector<Callback> running_posted_;

  std::vector<Callback> deferred_;
  std::vector<TurnEndFlush*> flushes_;
  std::vector<TurnEndFlush*> running_flushes_;
  std::vector<BlockingWork*> blocking_;

  std::unique_ptr<char[]> read_slab_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace weft
