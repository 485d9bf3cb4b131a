#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weft {

template <typename Signature>
class UniqueFunction;

// A callable that is moved, never copied, and keeps small closures inline (48 bytes), so that a timer or a
// completion costs no allocation.
//
// Calling an empty one is a mistake of ours: check with `if (f)`.
template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)

  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::remove_cvref_t<F>&, Args...>)
      UniqueFunction(F&& f) {  // NOLINT(google-explicit-constructor)
    using Callable = std::remove_cvref_t<F>;
    if constexpr (sizeof(Callable) <= kInlineBytes && alignof(Callable) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Callable>) {
      ::new (static_cast<void*>(storage_)) Callable(std::forward<F>(f));
      ops_ = &inline_ops<Callable>;
    } else {
      *reinterpret_cast<Callable**>(storage_) = new Callable(std::forward<F>(f));
      ops_ = &heap_ops<Callable>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  UniqueFunction(const UniqueFunction&) = delete;
  UniqueFunction& operator=(const UniqueFunction&) = delete;
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return ops_ != nullptr; }
  R operator()(Args... args) { return ops_->call(storage_, std::forward<Args>(args)...); }

  void reset() {
    if (ops_ == nullptr) return;
    const Ops* ops = std::exchange(ops_, nullptr);
    ops->destroy(storage_);
  }

 private:
  static constexpr std::size_t kInlineBytes = 48;

  struct Ops {
    R (*call)(void*, Args&&...);
    void (*move)(void* to, void* from) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <typename Callable>
  static constexpr Ops inline_ops = {
      [](void* self, Args&&... args) -> R {
        return (*static_cast<Callable*>(self))(std::forward<Args>(args)...);
      },
      [](void* to, void* from) noexcept {
        ::new (to) Callable(std::move(*static_cast<Callable*>(from)));
        static_cast<Callable*>(from)->~Callable();
      },
      [](void* self) noexcept { static_cast<Callable*>(self)->~Callable(); },
  };
  template <typename Callable>
  static constexpr Ops heap_ops = {
      [](void* self, Args&&... args) -> R {
        return (**static_cast<Callable**>(self))(std::forward<Args>(args)...);
      },
      [](void* to, void* from) noexcept { *static_cast<Callable**>(to) = *static_cast<Callable**>(from); },
      [](void* self) noexcept { delete *static_cast<Callable**>(self); },
  };

  void take(UniqueFunction& other) noexcept {
    ops_ = std::exchange(other.ops_, nullptr);
    if (ops_ != nullptr) ops_->move(storage_, other.storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
  const Ops* ops_ = nullptr;
};

}  // namespace weft
