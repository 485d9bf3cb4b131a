#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "lib/loop/task.h"

namespace weft {

// Runs all tasks side by side; `co_await` gives, in order, what each threw, or null.
class [[nodiscard]] WhenAll {
 public:
  explicit WhenAll(std::vector<Task<void>> tasks) : tasks_(std::move(tasks)) {}
  WhenAll(const WhenAll&) = delete;
  WhenAll& operator=(const WhenAll&) = delete;

  [[nodiscard]] bool await_ready() const { return tasks_.empty(); }
  bool await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    open_ = tasks_.size() + 1;  // One share of our own: tasks may end while others are still to be started.
    for (Task<void>& task : tasks_) task.start(&WhenAll::on_end, this);
    return --open_ > 0;
  }
  std::vector<std::exception_ptr> await_resume() {
    std::vector<std::exception_ptr> failures;
    for (Task<void>& task : tasks_) {
      try {
        task.take();
        failures.emplace_back();
      } catch (...) {
        failures.push_back(std::current_exception());
      }
    }
    return failures;
  }

 private:
  static void on_end(void* self) {
    auto* all = static_cast<WhenAll*>(self);
    if (--all->open_ == 0) all->waiter_.resume();
  }

  std::vector<Task<void>> tasks_;
  std::size_t open_ = 0;
  std::coroutine_handle<> waiter_;
};

[[nodiscard]] inline WhenAll when_all(std::vector<Task<void>> tasks) {
  return WhenAll(std::move(tasks));
}

}  // namespace weft
