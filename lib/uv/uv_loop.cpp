#include "lib/uv/uv_loop.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "lib/base/assert.h"
#include "lib/base/buffer.h"

namespace weft {

namespace {

// A round of deferred callbacks may defer more. So many rounds belong to one turn; then sockets get theirs.
constexpr int kDeferRoundsMax = 16;
constexpr std::size_t kKeptCallbacksMax = 1024;

template <typename Handle>
HandlePtr<Handle> make_handle(uv_loop_t* loop, int (*init)(uv_loop_t*, Handle*), void* owner) {
  auto* handle = new Handle;
  const int status = init(loop, handle);
  WEFT_ASSERT(status == 0);
  handle->data = owner;
  return HandlePtr<Handle>(handle);
}

Instant read_clock() {
  return Instant(std::chrono::nanoseconds(uv_hrtime()));
}

// Keeps the vector's memory for the next turn, unless a burst made it big.
template <typename T>
void recycle(std::vector<T>& used, std::vector<T>& home) {
  used.clear();
  if (home.empty() && home.capacity() < used.capacity() && used.capacity() <= kKeptCallbacksMax) {
    home.swap(used);
  }
}

}  // namespace

struct UvLoop::BlockingWork {
  uv_work_t request;
  UvLoop* loop;
  Callback work;
  Callback done;
};

UvLoop::UvLoop() : thread_(std::this_thread::get_id()) {
  const int status = uv_loop_init(&loop_);
  WEFT_ASSERT(status == 0);  // Out of descriptors or memory before anything was done.
  timer_ = make_handle<uv_timer_t>(&loop_, uv_timer_init, this);
  wake_up_ = make_handle<uv_async_t>(
      &loop_,
      [](uv_loop_t* loop, uv_async_t* handle) {
        return uv_async_init(loop, handle,
                             [](uv_async_t* self) { static_cast<UvLoop*>(self->data)->run_posted(); });
      },
      this);
  before_wait_ = make_handle<uv_prepare_t>(&loop_, uv_prepare_init, this);
  after_wait_ = make_handle<uv_check_t>(&loop_, uv_check_init, this);
  no_wait_ = make_handle<uv_idle_t>(&loop_, uv_idle_init, this);
  uv_prepare_start(before_wait_.get(), [](uv_prepare_t* self) {
    auto* loop = static_cast<UvLoop*>(self->data);
    loop->end_turn();
    loop->arm_timer();
  });
  uv_check_start(after_wait_.get(), [](uv_check_t* self) { static_cast<UvLoop*>(self->data)->end_turn(); });
  // The memory is touched when the first socket reads.
  read_slab_.reset(new char[kReadBytes + kReadPadding]);
  std::memset(read_slab_.get() + kReadBytes, 0, kReadPadding);
}

UvLoop::~UvLoop() {
  WEFT_ASSERT(is_current());
  {
    const std::lock_guard lock(posted_mutex_);
    closed_ = true;
  }
  destroy_waiting();
  for (BlockingWork* work : blocking_) uv_cancel(reinterpret_cast<uv_req_t*>(&work->request));
  while (!blocking_.empty()) uv_run(&loop_, UV_RUN_ONCE);
  destroy_waiting();
  timer_.reset();
  wake_up_.reset();
  before_wait_.reset();
  after_wait_.reset();
  no_wait_.reset();
  uv_walk(
      &loop_,
      [](uv_handle_t* handle, void*) {
        WEFT_ASSERT(uv_is_closing(handle)); /* A socket outlives us. */
      },
      nullptr);
  while (uv_run(&loop_, UV_RUN_DEFAULT) != 0) {
  }
  const int status = uv_loop_close(&loop_);
  WEFT_ASSERT(status == 0);
}

// What callbacks own may itself cancel timers and close sockets: they are destroyed while everything stands.
void UvLoop::destroy_waiting() {
  for (;;) {
    std::vector<Callback> waiting = timers_.take_all();
    std::move(deferred_.begin(), deferred_.end(), std::back_inserter(waiting));
    deferred_.clear();
    {
      const std::lock_guard lock(posted_mutex_);
      std::move(posted_.begin(), posted_.end(), std::back_inserter(waiting));
      posted_.clear();
    }
    if (waiting.empty()) return;
  }
}

void UvLoop::run() {
  thread_ = std::this_thread::get_id();
  now_known_ = false;
  while (!stopping_.exchange(false)) uv_run(&loop_, UV_RUN_DEFAULT);
}

void UvLoop::stop() {
  stopping_ = true;
  if (is_current()) {
    uv_stop(&loop_);
  } else {
    post([this] {
      if (stopping_) uv_stop(&loop_);
    });
  }
}

Instant UvLoop::now() const {
  if (!is_current()) return read_clock();  // A worker, that must not touch what follows.
  if (!now_known_) {
    now_ = read_clock();
    now_known_ = true;
  }
  return now_;
}

std::int64_t UvLoop::wall_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

UvLoop::TimerId UvLoop::schedule(Instant when, Callback callback) {
  WEFT_ASSERT(is_current());
  if (closed_) return 0;
  return timers_.add(when, std::move(callback));
}

void UvLoop::cancel(TimerId timer) {
  WEFT_ASSERT(is_current());
  const Callback cancelled = timers_.cancel(timer);
}

void UvLoop::post(Callback callback) {
  const std::lock_guard lock(posted_mutex_);
  if (closed_) return;
  const bool was_empty = posted_.empty();
  posted_.push_back(std::move(callback));
  if (was_empty) uv_async_send(wake_up_.get());
}

void UvLoop::defer(Callback callback) {
  WEFT_ASSERT(is_current());
  if (closed_) return;
  deferred_.push_back(std::move(callback));
}

void UvLoop::run_blocking(Callback work, Callback done) {
  WEFT_ASSERT(is_current());
  if (closed_) return;
  auto* blocking = new BlockingWork{{}, this, std::move(work), std::move(done)};
  blocking->request.data = blocking;
  blocking_.push_back(blocking);
  uv_queue_work(
      &loop_, &blocking->request,
      [](uv_work_t* request) {
        auto* self = static_cast<BlockingWork*>(request->data);
        self->work();
        self->work.reset();
      },
      [](uv_work_t* request, int) {
        const std::unique_ptr<BlockingWork> self(static_cast<BlockingWork*>(request->data));
        std::erase(self->loop->blocking_, self.get());
        if (!self->loop->closed_) self->done();
      });
}

void UvLoop::flush_at_turn_end(TurnEndFlush& flush) {
  if (std::exchange(flush.queued_, true)) return;
  flushes_.push_back(&flush);
}

void UvLoop::forget_flush(TurnEndFlush& flush) {
  if (!std::exchange(flush.queued_, false)) return;
  std::replace(flushes_.begin(), flushes_.end(), &flush, static_cast<TurnEndFlush*>(nullptr));
  std::replace(running_flushes_.begin(), running_flushes_.end(), &flush, static_cast<TurnEndFlush*>(nullptr));
}

void UvLoop::flush_now() {
  // What an upcall of a flush writes goes out with the next one.
  if (flushes_.empty() || !running_flushes_.empty()) return;
  running_flushes_.swap(flushes_);
  for (std::size_t i = 0; i < running_flushes_.size(); ++i) {
    TurnEndFlush* flush = std::exchange(running_flushes_[i], nullptr);
    if (flush == nullptr) continue;
    flush->queued_ = false;
    flush->flush();
  }
  recycle(running_flushes_, flushes_);
  running_flushes_.clear();
}

void UvLoop::end_turn() {
  run_deferred();
  flush_now();
  // A flush may have failed a connection, and its owner deferred or written something.
  const bool more = !deferred_.empty() || !flushes_.empty();
  if (more != (uv_is_active(reinterpret_cast<uv_handle_t*>(no_wait_.get())) != 0)) {
    if (more) {
      uv_idle_start(no_wait_.get(), [](uv_idle_t*) {});
    } else {
      uv_idle_stop(no_wait_.get());
    }
  }
  now_known_ = false;
}

void UvLoop::run_deferred() {
  for (int round = 0; round < kDeferRoundsMax && !deferred_.empty(); ++round) {
    std::vector<Callback> running = std::exchange(deferred_, {});
    for (Callback& callback : running) {
      callback();
      callback.reset();
    }
    recycle(running, deferred_);
  }
}

void UvLoop::run_posted() {
  {
    const std::lock_guard lock(posted_mutex_);
    running_posted_.swap(posted_);
  }
  for (Callback& callback : running_posted_) {
    callback();
    callback.reset();
  }
  running_posted_.clear();
}

void UvLoop::arm_timer() {
  const Instant next = timers_.next();
  if (next == armed_for_) return;
  armed_for_ = next;
  if (next == kNever) {
    uv_timer_stop(timer_.get());
    return;
  }
  // libuv counts whole milliseconds; rounding up keeps a timer from ever being early.
  const Duration delay = std::max(next - read_clock(), Duration::zero());
  const auto delay_ms = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
  uv_update_time(&loop_);
  uv_timer_start(
      timer_.get(),
      [](uv_timer_t* self) {
        auto* loop = static_cast<UvLoop*>(self->data);
        loop->armed_for_ = kNever;
        loop->timers_.run_due(loop->now());
      },
      static_cast<std::uint64_t>(delay_ms), 0);
}

}  // namespace weft
