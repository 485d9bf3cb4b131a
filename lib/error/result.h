#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "lib/base/assert.h"
#include "lib/error/error.h"

namespace weft {

// A value, or the error that stands in its place. What may fail because of the world returns one.
template <typename T = void>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, T>)
      Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& operator*() & { return *get(); }
  [[nodiscard]] const T& operator*() const& { return *get(); }
  [[nodiscard]] T&& operator*() && { return std::move(*get()); }
  [[nodiscard]] T* operator->() { return get(); }
  [[nodiscard]] const T* operator->() const { return get(); }

  [[nodiscard]] const Error& error() const {
    WEFT_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

  // The value; throws the error's exception when there is none.
  T value() && {
    if (!ok()) error().raise();
    return std::move(*get());
  }

 private:
  T* get() {
    WEFT_ASSERT(ok());
    return std::get_if<0>(&state_);
  }
  const T* get() const {
    WEFT_ASSERT(ok());
    return std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    WEFT_ASSERT(error_.has_value());
    return *error_;
  }
  void value() const {
    if (error_.has_value()) error_->raise();
  }

 private:
  std::optional<Error> error_;
};

}  // namespace weft
