#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "lib/base/assert.h"

namespace weft {

template <typename T = void>
class Task;

namespace detail {

// What promises of every Task share: who is resumed at the end.
class TaskPromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) noexcept {
      TaskPromiseBase& promise = finished.promise();
      if (promise.callback_ == nullptr) return promise.continuation_;
      promise.callback_(
          promise.callback_context_);  // May destroy this frame: nothing of it is touched afterwards.
      return std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }

  void set_continuation(std::coroutine_handle<> continuation) { continuation_ = continuation; }
  // Instead of a continuation: `callback(context)` runs at the end, and may destroy the task.
  void set_callback(void (*callback)(void*), void* context) {
    callback_ = callback;
    callback_context_ = context;
  }

 private:
  std::coroutine_handle<> continuation_ = std::noop_coroutine();
  void (*callback_)(void*) = nullptr;
  void* callback_context_ = nullptr;
};

template <typename T>
class TaskPromise final : public TaskPromiseBase {
 public:
  Task<T> get_return_object();
  template <typename U>
  requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) { outcome_.template emplace<1>(std::forward<U>(value)); }
  void unhandled_exception() { outcome_.template emplace<2>(std::current_exception()); }
  T take() {
    if (outcome_.index() == 2) std::rethrow_exception(std::get<2>(outcome_));
    WEFT_ASSERT(outcome_.index() == 1);
    return std::move(std::get<1>(outcome_));
  }

 private:
  std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() {}
  void unhandled_exception() { failure_ = std::current_exception(); }
  void take() {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

}  // namespace detail

// A coroutine that gives a T: what handlers return and callers write.
//
// Starts when it is awaited (or spawned on a broker) and runs on the loop's thread. Destroying it unfinished
// destroys its frame and all that it awaits. What it throws is thrown to whoever awaits it.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() { destroy(); }

  [[nodiscard]] bool valid() const { return handle_ != nullptr; }
  [[nodiscard]] bool done() const { return handle_ != nullptr && handle_.done(); }

  struct Awaiter {
    Handle handle;
    bool await_ready() const noexcept { return handle.done(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
      handle.promise().set_continuation(awaiting);
      return handle;
    }
    T await_resume() { return handle.promise().take(); }
  };
  Awaiter operator co_await() && noexcept { return Awaiter{handle_}; }
  Awaiter operator co_await() & noexcept { return Awaiter{handle_}; }

  // For those who run tasks without being coroutines: starts it; `callback(context)` runs at its end and may
  // destroy the task.
  void start(void (*callback)(void*), void* context) {
    handle_.promise().set_callback(callback, context);
    handle_.resume();
  }
  // Gives the frame away: the caller destroys it.
  [[nodiscard]] Handle release() { return std::exchange(handle_, nullptr); }
  // The outcome of a done task; throws what it threw.
  T take() { return handle_.promise().take(); }

 private:
  void destroy() {
    if (handle_ != nullptr) std::exchange(handle_, nullptr).destroy();
  }

  Handle handle_;
};

namespace detail {

template <typename T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

template <typename T>
inline constexpr bool kIsTask = false;
template <typename T>
inline constexpr bool kIsTask<Task<T>> = true;

template <typename T>
struct TaskResult {
  using Type = T;
};
template <typename T>
struct TaskResult<Task<T>> {
  using Type = T;
};

}  // namespace detail

// T for Task<T>, and for T itself.
template <typename T>
using TaskResultOf = typename detail::TaskResult<T>::Type;

// A coroutine that belongs to nobody: runs at once and frees itself. Its body must not throw.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace weft
