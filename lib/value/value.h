#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

// Thrown by the typed accessors of Value (and by nothing else in lib/value) when a value is of another kind.
class ValueError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes that are not text: binary in MessagePack, Node's Buffer form in JSON.
struct Binary {
  std::string bytes;
  friend bool operator==(const Binary&, const Binary&) = default;
};

// A point in wall-clock time, milliseconds since 1970 (JavaScript's Date): ISO 8601 text in JSON, a timestamp
// in MessagePack.
struct Timestamp {
  std::int64_t ms = 0;
  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};

class Value;
struct Member;

// A key with its value, as the braces of an object literal make it: Value{{"a", 1}, {"b", "x"}}.
//
// Deliberately no aggregate and no initializer_list: g++ 12 miscompiles those in expressions that co_await.
class Field {
 public:
  template <typename T>
  requires std::constructible_from<Value, T&&> Field(std::string_view key,
                                                     T&& value);  // NOLINT(google-explicit-constructor)
  Field(std::string_view key, Value value);
  Field(Field&&) noexcept;
  ~Field();

  [[nodiscard]] std::string_view key() const { return key_; }
  [[nodiscard]] Value take() &&;

 private:
  std::string key_;
  std::unique_ptr<Value> value_;
};

// Integers other than bool and the character types.
template <typename T>
concept ValueInteger =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

// The tree that params, results, meta and settings are made of. 16 bytes; text up to 14 bytes is held inline.
//
// Copies are deep; moving is cheap. Objects keep their members in order; setting a key again replaces its
// value. Text is UTF-8 (a lone surrogate of a JavaScript peer is kept in its three-byte form). Thread: any,
// one at a time.
class Value {
 public:
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInt,
    kUint,
    kDouble,
    kString,
    kBinary,
    kTimestamp,
    kArray,
    kObject
  };

  Value() noexcept { set_kind(Kind::kNull); }
  // The scalar constructors are templates so that braces never choose them: {"a", 1} is always a field.
  template <std::same_as<std::nullptr_t> T>
  Value(T) noexcept {  // NOLINT(google-explicit-constructor)
    set_kind(Kind::kNull);
  }
  template <std::same_as<bool> T>
  Value(T value) noexcept {  // NOLINT(google-explicit-constructor)
    set_kind(Kind::kBool);
    rep_.word.boolean = value;
  }
  template <ValueInteger T>
  Value(T value) noexcept {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_signed_v<T>) {
      set_int(value);
    } else {
      set_uint(value);
    }
  }
  template <std::floating_point T>
  Value(T value) noexcept {  // NOLINT(google-explicit-constructor)
    set_kind(Kind::kDouble);
    rep_.word.number = static_cast<double>(value);
  }
  template <typename T>
  requires std::convertible_to<T, std::string_view> &&(!std::same_as<std::remove_cvref_t<T>, std::nullptr_t>)
      Value(const T& text) {  // NOLINT(google-explicit-constructor)
    set_string(std::string_view(text));
  }
  template <std::same_as<Binary> T>
  Value(T value) {  // NOLINT(google-explicit-constructor)
    set_binary(std::move(value));
  }
  template <std::same_as<Timestamp> T>
  Value(T value) noexcept {  // NOLINT(google-explicit-constructor)
    set_kind(Kind::kTimestamp);
    rep_.word.integer = value.ms;
  }
  template <typename T>
  Value(std::vector<T> items);  // NOLINT(google-explicit-constructor)

#include "lib/value/value_field_constructors.inc"

  Value(const Value& other);
  Value(Value&& other) noexcept : rep_(other.rep_) {
    other.set_kind(Kind::kNull);
  }
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value() {
    if (owns_heap()) destroy();
  }

  [[nodiscard]] static Value array();
  [[nodiscard]] static Value object();

  [[nodiscard]] Kind kind() const {
    return static_cast<Kind>(rep_.tag.kind);
  }
  [[nodiscard]] bool is_null() const {
    return kind() == Kind::kNull;
  }
  [[nodiscard]] bool is_bool() const {
    return kind() == Kind::kBool;
  }
  [[nodiscard]] bool is_integer() const {
    return kind() == Kind::kInt || kind() == Kind::kUint;
  }
  [[nodiscard]] bool is_number() const {
    return is_integer() || kind() == Kind::kDouble;
  }
  [[nodiscard]] bool is_string() const {
    return kind() == Kind::kString;
  }
  [[nodiscard]] bool is_binary() const {
    return kind() == Kind::kBinary;
  }
  [[nodiscard]] bool is_timestamp() const {
    return kind() == Kind::kTimestamp;
  }
  [[nodiscard]] bool is_array() const {
    return kind() == Kind::kArray;
  }
  [[nodiscard]] bool is_object() const {
    return kind() == Kind::kObject;
  }

  // Typed access. Throws ValueError when the value is of another kind or does not fit. Integer accessors take
  // a double without fraction; f64 takes any number.
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t i64() const;
  [[nodiscard]] std::uint64_t u64() const;
  [[nodiscard]] double f64() const;
  [[nodiscard]] std::string_view str() const;
  [[nodiscard]] std::string_view binary() const;
  [[nodiscard]] Timestamp timestamp() const;

  // The same with a default instead of a throw.
  [[nodiscard]] bool boolean_or(bool fallback) const {
    return is_bool() ? rep_.word.boolean : fallback;
  }
  [[nodiscard]] std::int64_t i64_or(std::int64_t fallback) const;
  [[nodiscard]] double f64_or(double fallback) const;
  [[nodiscard]] std::string_view str_or(std::string_view fallback) const {
    return is_string() ? str() : fallback;
  }

  // Elements of an array, members of an object; 0 for everything else.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const {
    return size() == 0;
  }

  // The items of an array; empty for anything else.
  [[nodiscard]] std::span<const Value> items() const;
  [[nodiscard]] std::span<Value> items();
  // The members of an object in order; empty for anything else.
  [[nodiscard]] std::span<const Member> members() const;
  [[nodiscard]] std::span<Member> members();

  // The member `key`, or nothing. Linear: objects are small, and order is kept.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
  [[nodiscard]] bool contains(std::string_view key) const {
    return find(key) != nullptr;
  }
  // Follows a path of member names and array indexes: "a.b[0].c" or "a.b.0.c".
  [[nodiscard]] const Value* find_path(std::string_view path) const;

  // Reading a missing key or index gives null.
  [[nodiscard]] const Value& operator[](std::string_view key) const;
  [[nodiscard]] const Value& operator[](std::size_t index) const;
  [[nodiscard]] const Value& operator[](const char* key) const {
    return (*this)[std::string_view(key)];
  }
  [[nodiscard]] const Value& operator[](int index) const {
    return (*this)[static_cast<std::size_t>(index)];
  }
  // Writing makes the member; null becomes an object first. Throws ValueError on any other kind.
  Value& operator[](std::string_view key);
  Value& operator[](const char* key) {
    return (*this)[std::string_view(key)];
  }
  // An item to be changed; throws ValueError when there is none.
  [[nodiscard]] Value& operator[](std::size_t index);
  [[nodiscard]] Value& operator[](int index) {
    return (*this)[static_cast<std::size_t>(index)];
  }
  Value& set(std::string_view key, Value value);
  // Appends without looking for an earlier member of that name: for readers that know, and copies.
  Value& append_member(std::string key, Value value);
  // Of members with one name keeps the last value at the first place: what readers do after append_member.
  void drop_duplicate_members();
  bool erase(std::string_view key);
  // Appends to an array; null becomes an array first. Throws ValueError on any other kind.
  Value& push_back(Value value);
  void reserve(std::size_t count);

  // Copies each member of `other` over this object's; null becomes an object first.
  void merge(const Value& other);

  // Numbers compare by value (1 == 1.0); objects whatever the order of their members.
  friend bool operator==(const Value& a, const Value& b);

 private:
  static constexpr std::size_t kInlineTextMax = 14;

  struct Word {
    std::uint8_t kind;
    std::uint8_t extra;
    union {
      bool boolean;
      std::int64_t integer;
      std::uint64_t unsigned_integer;
      double number;
      std::string* text;
      std::vector<Value>* array;
      std::vector<Member>* object;
    };
  };
  struct Inline {
    std::uint8_t kind;
    std::uint8_t size;  // kOnHeap: the text is a std::string of its own.
    char bytes[kInlineTextMax];
  };
  struct Tag {
    std::uint8_t kind;
    std::uint8_t extra;
  };
  union Rep {
    Tag tag;
    Word word;
    Inline text;
  };
  static constexpr std::uint8_t kOnHeap = 0xff;

  void set_kind(Kind kind, std::uint8_t extra = 0) {
    rep_.word.kind = static_cast<std::uint8_t>(kind);
    rep_.word.extra = extra;
    rep_.word.integer = 0;
  }
  void set_int(std::int64_t value) {
    set_kind(Kind::kInt);
    rep_.word.integer = value;
  }
  void set_uint(std::uint64_t value) {  // Below 2^63 an integer is kInt, whatever type it came from.
    set_kind(value > INT64_MAX ? Kind::kUint : Kind::kInt);
    rep_.word.unsigned_integer = value;
  }
  void set_string(std::string_view text);
  void set_binary(Binary value);
  [[nodiscard]] bool owns_heap() const {
    const Kind k = kind();
    return (k == Kind::kString && rep_.tag.extra == kOnHeap) || k == Kind::kBinary || k >= Kind::kArray;
  }
  void destroy() noexcept;
  void begin_fields(std::size_t count);
  void add_field(Field& field);
  std::vector<Member>& make_object();

  Rep rep_;
};
static_assert(sizeof(Value) == 16);

struct Member {
  std::string key;
  Value value;
};

[[nodiscard]] std::string_view to_string(Value::Kind kind);

// An array of the given items: arr(1, "two", arr(3)).
template <typename... Items>
[[nodiscard]] Value arr(Items&&... items) {
  Value array = Value::array();
  array.reserve(sizeof...(items));
  (array.push_back(Value(std::forward<Items>(items))), ...);
  return array;
}

template <typename T>
requires std::constructible_from<Value, T&&> Field::Field(std::string_view key, T&& value)
    : key_(key), value_(new Value(std::forward<T>(value))) {}

template <typename T>
Value::Value(std::vector<T> items) {
  Value array = Value::array();
  array.reserve(items.size());
  for (auto&& item : items) array.push_back(Value(static_cast<T>(std::move(item))));
  rep_ = array.rep_;
  array.set_kind(Kind::kNull);
}

}  // namespace weft
