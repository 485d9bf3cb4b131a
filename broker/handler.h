#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "broker/context.h"
#include "lib/error/result.h"
#include "lib/loop/task.h"
#include "lib/protocol/payload.h"

namespace weft {

// What handlers give back becomes a Payload: nothing stays absent, described structs travel as they are.
template <typename T>
[[nodiscard]] Payload to_payload(T&& result) {
  using R = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<R, Payload>) {
    return std::forward<T>(result);
  } else if constexpr (std::is_constructible_v<Value, T&&>) {
    return Payload(Value(std::forward<T>(result)));
  } else {
    static_assert(
        HasTyped<R>,
        "a handler gives a Value, a Payload, a type described with WEFT_FIELDS, or a Result or Task of one");
    return Payload::own<R>(std::forward<T>(result));
  }
}

namespace detail {

// A handler's coroutine, whatever it gives. Started once; `take` makes its result a Payload or throws what it
// threw.
class ErasedTask {
 public:
  ErasedTask() = default;
  template <typename T>
  explicit ErasedTask(Task<T> task) : handle_(task.release()), ops_(&kOpsOf<T>) {}
  ErasedTask(ErasedTask&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), ops_(std::exchange(other.ops_, nullptr)) {}
  ErasedTask& operator=(ErasedTask&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
      ops_ = std::exchange(other.ops_, nullptr);
    }
    return *this;
  }
  ~ErasedTask() { destroy(); }

  explicit operator bool() const { return handle_ != nullptr; }
  // `callback(context)` runs at the end of the coroutine and may destroy this object.
  void start(void (*callback)(void*), void* context) { ops_->start(handle_, callback, context); }
  [[nodiscard]] Result<Payload> take() { return ops_->take(handle_); }

 private:
  struct Ops {
    void (*start)(std::coroutine_handle<>, void (*)(void*), void*);
    Result<Payload> (*take)(std::coroutine_handle<>);
  };
  template <typename T>
  using HandleOf = std::coroutine_handle<TaskPromise<T>>;
  template <typename T>
  static Result<Payload> take_from(std::coroutine_handle<> handle);
  template <typename T>
  static constexpr Ops kOpsOf = {
      [](std::coroutine_handle<> handle, void (*callback)(void*), void* context) {
        HandleOf<T>::from_address(handle.address()).promise().set_callback(callback, context);
        handle.resume();
      },
      &take_from<T>,
  };
  void destroy() {
    if (handle_ != nullptr) std::exchange(handle_, nullptr).destroy();
  }

  std::coroutine_handle<> handle_;
  const Ops* ops_ = nullptr;
};

template <typename T>
inline constexpr bool kIsResult = false;
template <typename T>
inline constexpr bool kIsResult<Result<T>> = true;

// A plain value, or a Result of one, as the outcome of a handler.
template <typename R>
[[nodiscard]] Result<Payload> to_outcome(R&& result) {
  if constexpr (kIsResult<std::remove_cvref_t<R>>) {
    if (!result) return result.error();
    if constexpr (std::is_same_v<std::remove_cvref_t<R>, Result<void>>) {
      return Payload();
    } else {
      return to_payload(*std::forward<R>(result));
    }
  } else {
    return to_payload(std::forward<R>(result));
  }
}

template <typename T>
Result<Payload> ErasedTask::take_from(std::coroutine_handle<> handle) {
  auto& promise = HandleOf<T>::from_address(handle.address()).promise();
  if constexpr (std::is_void_v<T>) {
    promise.take();
    return Payload();
  } else {
    return to_outcome(promise.take());
  }
}

// The parameter list of a handler: of a lambda, a function or a member function.
template <typename F>
struct HandlerTraits : HandlerTraits<decltype(&F::operator())> {};
template <typename R, typename... Args>
struct HandlerTraits<R (*)(Args...)> {
  using Return = R;
  using Arguments = std::tuple<Args...>;
};
template <typename C, typename R, typename... Args>
struct HandlerTraits<R (C::*)(Args...)> : HandlerTraits<R (*)(Args...)> {};
template <typename C, typename R, typename... Args>
struct HandlerTraits<R (C::*)(Args...) const> : HandlerTraits<R (*)(Args...)> {};
template <typename C, typename R, typename... Args>
struct HandlerTraits<R (C::*)(Args...) noexcept> : HandlerTraits<R (*)(Args...)> {};
template <typename C, typename R, typename... Args>
struct HandlerTraits<R (C::*)(Args...) const noexcept> : HandlerTraits<R (*)(Args...)> {};

template <typename Arguments>
struct ParamsOf {
  using Type = void;
};
template <typename C, typename P>
struct ParamsOf<std::tuple<C, P>> {
  using Type = std::remove_cvref_t<P>;
};

}  // namespace detail

// How a handler ended in line, or the coroutine that will tell.
struct HandlerOutcome {
  Result<Payload> result = Payload();
  detail::ErasedTask task;
};

// A user's handler, whatever its signature.
//
// Held by a shared_ptr in every run of it, so that a removed service's coroutines end safely. What a handler
// throws leaves invoke(): the dispatcher's one catch turns it into an Error.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void invoke(Context& context, HandlerOutcome& outcome) = 0;
  // It may outlive the call into invoke(): the context must be on the heap and independent of the packet.
  [[nodiscard]] bool is_coroutine() const { return is_coroutine_; }
  // The rules of its typed params, or null.
  [[nodiscard]] virtual Value params_schema() const { return {}; }

 protected:
  explicit Handler(bool is_coroutine) : is_coroutine_(is_coroutine) {}

 private:
  const bool is_coroutine_;
};

namespace detail {

// `Call` takes (Context&) or (Context&, P).
template <typename Function, typename Traits>
class TypedHandler final : public Handler {
  using Return = typename Traits::Return;
  using Arguments = typename Traits::Arguments;
  static constexpr std::size_t kArity = std::tuple_size_v<Arguments>;
  static_assert(kArity == 1 || kArity == 2, "a handler takes (weft::Context&) or (weft::Context&, Params)");
  static_assert(std::is_same_v<std::tuple_element_t<0, Arguments>, Context&>,
                "a handler's first parameter is weft::Context&");
  using Parameter = std::tuple_element_t<kArity - 1, Arguments>;
  static_assert(kArity == 1 || !std::is_reference_v<Parameter> ||
                    (std::is_lvalue_reference_v<Parameter> &&
                     std::is_const_v<std::remove_reference_t<Parameter>>),
                "a handler takes its params by value or by const reference: they may be the caller's own");
  using P = typename ParamsOf<Arguments>::Type;

 public:
  explicit TypedHandler(Function function) : Handler(kIsTask<Return>), function_(std::move(function)) {}

  void invoke(Context& context, HandlerOutcome& outcome) override {
    if constexpr (kArity == 1) {
      finish(outcome, [&]() -> Return { return function_(context); });
    } else if constexpr (std::is_same_v<P, Value>) {
      finish(outcome, [&]() -> Return { return function_(context, context.params.value()); });
    } else if constexpr (std::is_same_v<P, Payload>) {
      finish(outcome, [&]() -> Return { return function_(context, context.params); });
    } else if (const P* object = context.params.template object_as<P>(); object != nullptr) {
      finish(outcome, [&]() -> Return { return function_(context, *object); });
    } else {
      Result<P> decoded = context.params.template as<P>();
      if (!decoded) {
        outcome.result = decoded.error();
        return;
      }
      if constexpr (kIsTask<Return>) {  // The coroutine may hold a reference: keep the struct with the
                                        // context.
        context.params = Payload::own<P>(std::move(*decoded));
        const P& kept = *context.params.template object_as<P>();
        finish(outcome, [&]() -> Return { return function_(context, kept); });
      } else {
        finish(outcome, [&]() -> Return { return function_(context, std::move(*decoded)); });
      }
    }
  }

  [[nodiscard]] Value params_schema() const override {
    if constexpr (Described<P>) return Typed<P>::rules();
    return {};
  }

 private:
  template <typename Invoke>
  static void finish(HandlerOutcome& outcome, Invoke&& call) {
    if constexpr (kIsTask<Return>) {
      outcome.task = ErasedTask(call());
    } else if constexpr (std::is_void_v<Return>) {
      call();
    } else {
      outcome.result = to_outcome(call());
    }
  }

  Function function_;
};

}  // namespace detail

// Makes a Handler of a lambda or function: (Context&) or (Context&, Params), plain or a coroutine.
template <typename F>
[[nodiscard]] std::shared_ptr<Handler> make_handler(F function) {
  using Traits = detail::HandlerTraits<F>;
  return std::make_shared<detail::TypedHandler<F, Traits>>(std::move(function));
}

// The same of a member function of `self`, which outlives every run (the service holds its handlers).
template <typename S, typename R, typename... Args>
[[nodiscard]] std::shared_ptr<Handler> make_member_handler(S* self, R (S::*method)(Args...)) {
  auto bound = [self, method](Args... args) -> R { return (self->*method)(std::forward<Args>(args)...); };
  return std::make_shared<detail::TypedHandler<decltype(bound), detail::HandlerTraits<R (*)(Args...)>>>(
      bound);
}

}  // namespace weft
