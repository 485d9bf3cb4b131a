#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "lib/base/config.h"
#include "lib/protocol/payload.h"

namespace weft {

// What is handed to a call or an event: nothing, braces {{"a", 1}}, a Value, a described struct, or a Payload
// that came from elsewhere. A struct is borrowed for the duration of the call expression.
class Params {
 public:
  Params() = default;  // A call sends {}, an event null.
  template <std::same_as<std::nullptr_t> T>
  Params(T) : payload_(Value()) {}  // NOLINT(google-explicit-constructor): explicit null
  Params(Payload payload) : payload_(std::move(payload)) {}  // NOLINT(google-explicit-constructor)
  template <std::same_as<Value> T>
  Params(T value) : payload_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  template <Described T>
  Params(const T& object) : payload_(Payload::borrow(object)) {}  // NOLINT(google-explicit-constructor)
  // Scalars, text, lists.
  template <typename T>
  requires(std::constructible_from<Value, const T&> && !std::same_as<T, Value> && !std::same_as<T, Payload> &&
           !Described<T> && !std::same_as<T, std::nullptr_t> && !std::same_as<T, Field>)
      Params(const T& value)
      : payload_(Value(value)) {}  // NOLINT(google-explicit-constructor)
#if WEFT_GUARD_AGGREGATE_TEMPORARIES
  // This compiler destroys such a temporary twice when it stands in an expression with co_await. Name the
  // object first, or hand it over with weft::moved(object).
  template <Described T>
  requires(!std::is_trivially_destructible_v<T> && !std::is_reference_v<T> && !std::is_const_v<T>)
      Params(T&& object)
  = delete;
#endif

#include "broker/params_field_constructors.inc"

  [[nodiscard]] const Payload& payload() const {
    return payload_;
  }
  [[nodiscard]] Payload take() && {
    return std::move(payload_);
  }

 private:
  Payload payload_;
};

// Whether a brace-made temporary of T may stand in an expression with co_await.
template <typename T>
inline constexpr bool kSafeTemporary =
    !WEFT_GUARD_AGGREGATE_TEMPORARIES || std::is_trivially_destructible_v<T>;

// Hands a named struct over: co_await broker.call("users.create", weft::moved(user)).
template <Described T>
[[nodiscard]] Params moved(T& object) {
  return Params(Payload::own(std::move(object)));
}

}  // namespace weft
