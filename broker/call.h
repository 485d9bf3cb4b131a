#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/call_options.h"
#include "broker/params.h"
#include "lib/base/unique_function.h"
#include "lib/error/result.h"
#include "lib/protocol/payload.h"

namespace weft {

class Context;

// The name of an action with its types, as a constant:
//   inline constexpr weft::Action<AddParams, int64_t> add{"math.add"};
template <typename P, typename R>
struct Action {
  std::string_view name;
};

namespace detail {

// The part of a call that its caller sees. Counted by hand: one loop thread, no atomics.
class CallState {
 public:
  CallState() = default;
  CallState(const CallState&) = delete;
  CallState& operator=(const CallState&) = delete;

  void add_ref() { ++refs_; }
  void release() {
    if (--refs_ == 0) recycle();
  }

  [[nodiscard]] bool done() const { return done_; }
  // Gives the outcome; runs whoever waits for it. Once.
  void complete(Result<Payload> outcome);

  std::coroutine_handle<> waiter;
  UniqueFunction<void()> on_done;
  Payload response_meta;
  Payload response_headers;
  std::string response_node;  // When it was asked for.
  std::optional<Result<Payload>> outcome;

 protected:
  virtual ~CallState() = default;
  virtual void recycle() { delete this; }
  void reset();

 private:
  int refs_ = 0;
  bool done_ = false;
};

}  // namespace detail

// A share in a call under way.
class CallRef {
 public:
  CallRef() = default;
  explicit CallRef(detail::CallState* state) : state_(state) {
    if (state_ != nullptr) state_->add_ref();
  }
  CallRef(const CallRef& other) : CallRef(other.state_) {}
  CallRef(CallRef&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  CallRef& operator=(CallRef other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~CallRef() {
    if (state_ != nullptr) state_->release();
  }
  [[nodiscard]] detail::CallState* get() const { return state_; }
  detail::CallState* operator->() const { return state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  detail::CallState* state_ = nullptr;
};

// What awaiting a call shares. The call is under way from the moment it is made; awaiting takes its result. A
// call that is dropped without being awaited runs on, its result is passed over.
class CallAwaiterBase {
 public:
  CallAwaiterBase(CallRef call, Context* parent, const CallOptions& options)
      : call_(std::move(call)),
        parent_(parent),
        response_meta_(options.response_meta),
        response_headers_(options.response_headers),
        response_node_(options.response_node) {}
  CallAwaiterBase(CallAwaiterBase&&) noexcept = default;
  CallAwaiterBase& operator=(CallAwaiterBase&&) noexcept = default;

  [[nodiscard]] bool await_ready() const { return call_->done(); }
  void await_suspend(std::coroutine_handle<> waiter) { call_->waiter = waiter; }

 protected:
  // A coroutine that is destroyed while it waits must not be resumed.
  ~CallAwaiterBase() {
    if (call_) call_->waiter = nullptr;
  }

  // Takes the outcome; merges the callee's meta into the calling context, on success and on failure.
  [[nodiscard]] Result<Payload> take();
  template <typename T>
  [[nodiscard]] Result<T> take_as() {
    Result<Payload> outcome = take();
    if (!outcome) return outcome.error();
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return outcome->template as<T>();
    }
  }

 private:
  CallRef call_;
  Context* parent_;
  Value* response_meta_;
  Value* response_headers_;
  std::string* response_node_;
};

// `co_await`ing it gives the result as a T, or throws the call's error.
template <typename T>
class [[nodiscard]] Call : public CallAwaiterBase {
 public:
  using CallAwaiterBase::CallAwaiterBase;
  T await_resume() { return take_as<T>().value(); }
};

// `co_await`ing it gives a Result<T>; nothing is thrown.
template <typename T>
class [[nodiscard]] TryCall : public CallAwaiterBase {
 public:
  using CallAwaiterBase::CallAwaiterBase;
  Result<T> await_resume() { return take_as<T>(); }
};

// One of several calls made together.
struct CallRequest {
  CallRequest(std::string_view action_name, Params call_params = {}, const CallOptions& call_options = {})
      : action(action_name), params(std::move(call_params)), options(call_options) {}
  std::string action;
  Params params;
  CallOptions options;
};

// Several calls, in braces or as a vector.
class Calls {
 public:
  Calls(std::vector<CallRequest> requests)
      : list(std::move(requests)) {}  // NOLINT(google-explicit-constructor)
#include "broker/calls_constructors.inc"

  std::vector<CallRequest> list;
};

// `co_await`ing it gives the results in order, or throws the first error (the other calls run on);
// `co_await std::move(calls).settled()` gives every outcome.
class [[nodiscard]] MultiCall {
 public:
  class Settled;

  MultiCall(std::vector<CallRef> calls, Context* parent);
  MultiCall(MultiCall&&) noexcept = default;
  MultiCall& operator=(MultiCall&&) noexcept = default;
  ~MultiCall();
  [[nodiscard]] Settled settled() &&;

  [[nodiscard]] bool await_ready() const;
  void await_suspend(std::coroutine_handle<> waiter);
  std::vector<Value> await_resume();

 private:
  struct State {
    std::vector<CallRef> calls;
    std::size_t open = 0;
    bool fail_fast = true;
    detail::CallState* first_failed = nullptr;  // One of `calls`.
    std::coroutine_handle<> waiter;

    void note_end(detail::CallState& call) {
      if (first_failed == nullptr && !call.outcome->ok()) first_failed = &call;
    }
    [[nodiscard]] bool ready() const { return open == 0 || (first_failed != nullptr && fail_fast); }
  };
  void merge_metas();
  [[nodiscard]] std::vector<Result<Value>> take_all();

  std::shared_ptr<State> state_;
  Context* parent_;
};

class [[nodiscard]] MultiCall::Settled {
 public:
  explicit Settled(MultiCall calls) : calls_(std::move(calls)) { calls_.state_->fail_fast = false; }
  [[nodiscard]] bool await_ready() const { return calls_.await_ready(); }
  void await_suspend(std::coroutine_handle<> waiter) { calls_.await_suspend(waiter); }
  std::vector<Result<Value>> await_resume() { return calls_.take_all(); }

 private:
  MultiCall calls_;
};

inline MultiCall::Settled MultiCall::settled() && {
  return Settled(std::move(*this));
}

}  // namespace weft
