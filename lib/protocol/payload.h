#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lib/base/buffer.h"
#include "lib/base/function_ref.h"
#include "lib/error/result.h"
#include "lib/value/typed.h"
#include "lib/value/value.h"

namespace weft {

class Serializer;

// A value in whichever form it came: not there at all, a tree, a described struct, or a slice of a message
// that nobody has looked into yet. Decoding happens when someone asks for a struct or a Value.
//
// Ownership: a slice or struct may be borrowed, as the maker says; retain() makes it independent. Copies of a
// retained payload share its content, which never changes. Thread: one at a time.
class Payload {
 public:
  Payload() = default;
  Payload(Value value)
      : kind_(Kind::kTree), tree_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  // Bytes of one encoded value, borrowed unless `owner` keeps them alive. kReadPadding readable bytes follow
  // them.
  [[nodiscard]] static Payload slice(const Serializer& serializer, BytesView bytes,
                                     std::shared_ptr<const void> owner = {});
  // Makes this a borrowed slice, or absent: what decoders do to the packets they fill again and again,
  // without the cost of assigning a new payload.
  void set_slice(const Serializer& serializer, BytesView bytes) {
    clear();
    kind_ = Kind::kSlice;
    bytes_ = bytes;
    serializer_ = &serializer;
  }
  void clear() {
    if (owner_ != nullptr) owner_.reset();
    if (!tree_.is_null()) tree_ = Value();
    kind_ = Kind::kAbsent;
    decoded_ = false;
  }
  // A described struct (or any type with Typed<T>), borrowed.
  template <typename T>
  [[nodiscard]] static Payload borrow(const T& object) {
    Payload payload;
    payload.kind_ = Kind::kObject;
    payload.object_ = &object;
    payload.ops_ = &kOpsOf<T>;
    return payload;
  }
  // The same, owned.
  template <typename T>
  [[nodiscard]] static Payload own(T object) {
    auto held = std::make_shared<const T>(std::move(object));
    Payload payload = borrow(*held);
    payload.owner_ = std::move(held);
    return payload;
  }

  [[nodiscard]] bool is_absent() const { return kind_ == Kind::kAbsent; }
  // Whether the content outlives the call it was handed to.
  [[nodiscard]] bool is_retained() const {
    return kind_ == Kind::kAbsent || kind_ == Kind::kTree || owner_ != nullptr;
  }
  // Copies what is borrowed.
  void retain();

  // The value as a tree, decoded at the first call and kept; null when absent. Throws Exception when the
  // bytes are malformed.
  [[nodiscard]] const Value& value() const;
  [[nodiscard]] Result<Value> to_value() const;
  // The value as a tree if it is one already: nothing is decoded, nothing can fail. Null otherwise.
  [[nodiscard]] const Value* tree() const {
    return kind_ == Kind::kAbsent || kind_ == Kind::kTree || decoded_ ? &tree_ : nullptr;
  }
  // Moves the tree out; decodes first if need be.
  [[nodiscard]] Value take_value() &&;

  // The value as a T. Wrong types and missing members are a ValidationError (422) with every violation in its
  // data.
  template <typename T>
  [[nodiscard]] Result<T> as() const {
    if constexpr (std::is_same_v<T, Value>) {
      return to_value();
    } else if constexpr (std::is_same_v<T, Payload>) {
      Payload copy = *this;
      copy.retain();
      return copy;
    } else {
      if (const T* object = object_as<T>()) return *object;
      T out{};
      const auto failure = read([&out](TypedReader& reader) { Typed<T>::read(reader, reader.next(), out); });
      if (failure) return *failure;
      return out;
    }
  }

  // The very object, when this payload holds a T. No copy, no decoding.
  template <typename T>
  [[nodiscard]] const T* object_as() const {
    return kind_ == Kind::kObject && ops_ == &kOpsOf<T> ? static_cast<const T*>(object_) : nullptr;
  }

  // Writes the value; absent writes null. Throws Exception when the bytes are malformed.
  void write(ValueWriter& writer) const;
  // The same without the throw; nothing was written when there is an error.
  [[nodiscard]] std::optional<Error> try_write(ValueWriter& writer) const;

  // The undecoded bytes when this is a slice in `serializer`'s form (its own, or that of another one of its
  // kind); empty otherwise.
  [[nodiscard]] BytesView raw(const Serializer& serializer) const;
  // Whether it is known without decoding to be an object without members, or absent.
  [[nodiscard]] bool is_empty_object() const;

 private:
  enum class Kind : std::uint8_t { kAbsent, kTree, kSlice, kObject };

  struct Ops {
    void (*write)(ValueWriter&, const void*);
    std::shared_ptr<const void> (*copy)(const void*);
  };
  template <typename T>
  static constexpr Ops kOpsOf = {
      [](ValueWriter& writer, const void* object) {
        Typed<T>::write(writer, *static_cast<const T*>(object));
      },
      [](const void* object) -> std::shared_ptr<const void> {
        return std::make_shared<const T>(*static_cast<const T*>(object));
      },
  };

  [[nodiscard]] std::optional<Error> read(FunctionRef<void(TypedReader&)> reader) const;
  // Makes tree_ hold the value.
  [[nodiscard]] std::optional<Error> decode() const;

  Kind kind_ = Kind::kAbsent;
  mutable bool decoded_ = false;  // tree_ holds what a slice or an object says.
  mutable Value tree_;
  BytesView bytes_;
  const Serializer* serializer_ = nullptr;
  const void* object_ = nullptr;
  const Ops* ops_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// The error of an action whose params do not fit: 422 VALIDATION_ERROR with the violations as data.
[[nodiscard]] Error validation_error(const std::vector<Violation>& violations);

}  // namespace weft
