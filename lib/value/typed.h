#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/value/fields.h"
#include "lib/value/token.h"
#include "lib/value/value.h"
#include "lib/value/value_io.h"

namespace weft {

// What is wrong with one place of a received value, in the form of Moleculer's validation errors.
struct Violation {
  std::string type;  // "required", "number", "string", "array" …
  std::string message;
  std::string field;   // "user.tags[1]"; empty for the value itself.
  std::string actual;  // What came instead, or empty.
};

// Reads typed values and gathers every violation on the way, with paths.
class TypedReader {
 public:
  explicit TypedReader(ValueReader& reader) : reader_(reader) {}

  [[nodiscard]] const Token& next() { return reader_.next(); }
  void skip() { reader_.skip(); }
  [[nodiscard]] ValueReader& value_reader() { return reader_; }

  // Passes over the rest of the value whose first token was `first`.
  void skip_rest(const Token& first);
  // Notes that a value of kind `type` was expected where `actual` came, and passes over it.
  void mismatch(std::string_view type, std::string_view expected, const Token& actual);
  void violation(std::string_view type, std::string message, std::string actual = {});
  void missing(std::string_view name);
  void malformed();

  void enter_member(std::string_view name);
  void enter_item(std::size_t index);
  void leave(std::size_t path_size) { path_.resize(path_size); }
  [[nodiscard]] std::size_t path_size() const { return path_.size(); }

  [[nodiscard]] bool ok() const { return violations_.empty() && !malformed_; }
  // The input itself is broken, which is the packet's fault and not the caller's.
  [[nodiscard]] bool is_malformed() const { return malformed_; }
  [[nodiscard]] std::string_view malformed_reason() const { return reader_.error(); }
  [[nodiscard]] std::vector<Violation>& violations() { return violations_; }

 private:
  ValueReader& reader_;
  std::string path_;
  std::vector<Violation> violations_;
  bool malformed_ = false;
};

// How a type is read from and written to any form of value. Specialise it for a type of your own:
//   static void read(TypedReader&, const Token& first, T& out);
//   static void write(ValueWriter&, const T&);
//   static Value schema();        a rule in fastest-validator's form, published to peers
template <typename T>
struct Typed;

template <typename T>
concept HasTyped = requires(TypedReader& reader, const Token& token, ValueWriter& writer, T& out,
                            const T& in) {
  Typed<T>::read(reader, token, out);
  Typed<T>::write(writer, in);
  { Typed<T>::schema() } -> std::same_as<Value>;
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <>
struct Typed<bool> {
  static void read(TypedReader& reader, const Token& first, bool& out) {
    if (first.kind == Token::Kind::kBool) {
      out = first.boolean;
    } else {
      reader.mismatch("boolean", "a boolean", first);
    }
  }
  static void write(ValueWriter& writer, bool value) { writer.boolean(value); }
  static Value schema() { return Value{{"type", "boolean"}}; }
};

// Reads an integer token (or a double without fraction) into [min, max]; notes a violation otherwise.
[[nodiscard]] bool read_signed(TypedReader& reader, const Token& first, std::int64_t min, std::int64_t max,
                               std::int64_t& out);
[[nodiscard]] bool read_unsigned(TypedReader& reader, const Token& first, std::uint64_t max,
                                 std::uint64_t& out);

template <ValueInteger T>
struct Typed<T> {
  static void read(TypedReader& reader, const Token& first, T& out) {
    if constexpr (std::is_signed_v<T>) {
      std::int64_t value = 0;
      if (read_signed(reader, first, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value)) {
        out = static_cast<T>(value);
      }
    } else {
      std::uint64_t value = 0;
      if (read_unsigned(reader, first, std::numeric_limits<T>::max(), value)) out = static_cast<T>(value);
    }
  }
  static void write(ValueWriter& writer, T value) {
    if constexpr (std::is_signed_v<T>) {
      writer.integer(value);
    } else {
      writer.unsigned_integer(value);
    }
  }
  static Value schema() { return Value{{"type", "number"}, {"integer", true}}; }
};

template <std::floating_point T>
struct Typed<T> {
  static void read(TypedReader& reader, const Token& first, T& out) {
    switch (first.kind) {
      case Token::Kind::kDouble:
        out = static_cast<T>(first.number);
        break;
      case Token::Kind::kInt:
        out = static_cast<T>(first.integer);
        break;
      case Token::Kind::kUint:
        out = static_cast<T>(first.unsigned_integer);
        break;
      default:
        reader.mismatch("number", "a number", first);
    }
  }
  static void write(ValueWriter& writer, T value) { writer.number(static_cast<double>(value)); }
  static Value schema() { return Value{{"type", "number"}}; }
};

template <>
struct Typed<std::string> {
  static void read(TypedReader& reader, const Token& first, std::string& out) {
    if (first.kind == Token::Kind::kString) {
      out.assign(first.text);
    } else {
      reader.mismatch("string", "a string", first);
    }
  }
  static void write(ValueWriter& writer, const std::string& value) { writer.string(value); }
  static Value schema() { return Value{{"type", "string"}}; }
};

// Written only: text that lives elsewhere.
template <>
struct Typed<std::string_view> {
  static void write(ValueWriter& writer, std::string_view value) { writer.string(value); }
};

// Binary also takes Node's JSON form of a Buffer: {"type":"Buffer","data":[…]}.
template <>
struct Typed<Binary> {
  static void read(TypedReader& reader, const Token& first, Binary& out);
  static void write(ValueWriter& writer, const Binary& value) { writer.binary(value.bytes); }
  static Value schema() { return Value{{"type", "any"}}; }
};

// A timestamp also takes ISO 8601 text ("2023-11-14T22:13:20.123Z") and milliseconds since 1970.
template <>
struct Typed<Timestamp> {
  static void read(TypedReader& reader, const Token& first, Timestamp& out);
  static void write(ValueWriter& writer, Timestamp value) { writer.timestamp(value.ms); }
  static Value schema() { return Value{{"type", "date"}, {"convert", true}}; }
};

template <>
struct Typed<Value> {
  static void read(TypedReader& reader, const Token& first, Value& out);
  static void write(ValueWriter& writer, const Value& value) { write_value(writer, value); }
  static Value schema() { return Value{{"type", "any"}}; }
};

template <typename T>
struct Typed<std::optional<T>> {
  static void read(TypedReader& reader, const Token& first, std::optional<T>& out) {
    if (first.kind == Token::Kind::kNull) {
      out.reset();
    } else {
      Typed<T>::read(reader, first, out.emplace());
    }
  }
  static void write(ValueWriter& writer, const std::optional<T>& value) {
    if (value) {
      Typed<T>::write(writer, *value);
    } else {
      writer.null();
    }
  }
  static Value schema() {
    Value rule = Typed<T>::schema();
    rule.set("optional", true);
    rule.set("nullable", true);
    return rule;
  }
};

template <typename T>
struct Typed<std::vector<T>> {
  static void read(TypedReader& reader, const Token& first, std::vector<T>& out) {
    if (first.kind != Token::Kind::kBeginArray) return reader.mismatch("array", "an array", first);
    out.clear();
    const std::size_t path = reader.path_size();
    while (true) {
      const Token& token = reader.next();
      if (token.kind == Token::Kind::kEndArray) return;
      if (token.kind == Token::Kind::kError) return reader.malformed();
      reader.enter_item(out.size());
      if constexpr (std::is_same_v<T, bool>) {
        bool item = false;
        Typed<bool>::read(reader, token, item);
        out.push_back(item);
      } else {
        Typed<T>::read(reader, token, out.emplace_back());
      }
      reader.leave(path);
      if (reader.is_malformed()) return;
    }
  }
  static void write(ValueWriter& writer, const std::vector<T>& value) {
    writer.begin_array(value.size());
    for (const auto& item : value) Typed<T>::write(writer, item);
    writer.end_array();
  }
  static Value schema() { return Value{{"type", "array"}, {"items", Typed<T>::schema()}}; }
};

// Maps from text, ordered or hashed, are objects.
template <typename Map>
struct TypedMap {
  using T = typename Map::mapped_type;
  static void read(TypedReader& reader, const Token& first, Map& out) {
    if (first.kind != Token::Kind::kBeginObject) return reader.mismatch("object", "an object", first);
    out.clear();
    const std::size_t path = reader.path_size();
    while (true) {
      const Token& token = reader.next();
      if (token.kind == Token::Kind::kEndObject) return;
      if (token.kind != Token::Kind::kKey) return reader.malformed();
      reader.enter_member(token.text);
      T& slot = out[std::string(token.text)];
      Typed<T>::read(reader, reader.next(), slot);
      reader.leave(path);
      if (reader.is_malformed()) return;
    }
  }
  static void write(ValueWriter& writer, const Map& value) {
    writer.begin_object(value.size());
    for (const auto& [key, item] : value) {
      writer.key(key);
      Typed<T>::write(writer, item);
    }
    writer.end_object();
  }
  static Value schema() {
    return Value{{"type", "record"}, {"key", "string"}, {"value", Typed<T>::schema()}};
  }
};
template <typename T>
struct Typed<std::map<std::string, T>> : TypedMap<std::map<std::string, T>> {};
template <typename T>
struct Typed<std::unordered_map<std::string, T>> : TypedMap<std::unordered_map<std::string, T>> {};

// Described structs are objects. Members are required unless std::optional; unknown keys are passed over.
template <Described T>
struct Typed<T> {
  static void read(TypedReader& reader, const Token& first, T& out) {
    static constexpr auto kFields = weft_fields(static_cast<const T*>(nullptr));
    constexpr std::size_t kCount = std::tuple_size_v<decltype(kFields)>;
    if (first.kind != Token::Kind::kBeginObject) return reader.mismatch("object", "an object", first);
    const std::size_t path = reader.path_size();
    std::array<bool, kCount + 1> seen{};
    while (true) {
      const Token& token = reader.next();
      if (token.kind == Token::Kind::kEndObject) break;
      if (token.kind != Token::Kind::kKey) return reader.malformed();
      if (!read_member(reader, token.text, out, seen, std::make_index_sequence<kCount>())) reader.skip();
      reader.leave(path);
      if (reader.is_malformed()) return;
    }
    note_missing(reader, seen, std::make_index_sequence<kCount>());
  }

  static void write(ValueWriter& writer, const T& value) {
    static constexpr auto kFields = weft_fields(static_cast<const T*>(nullptr));
    std::apply(
        [&](const auto&... field) {
          writer.begin_object((std::size_t{0} + ... + present(value.*(field.member))));
          (write_member(writer, field.name, value.*(field.member)), ...);
        },
        kFields);
    writer.end_object();
  }

  // The rules of each member by name: an action's `params` as it is published.
  static Value rules() {
    static constexpr auto kFields = weft_fields(static_cast<const T*>(nullptr));
    Value rules = Value::object();
    std::apply([&](const auto&... field) { (add_rule(rules, field), ...); }, kFields);
    return rules;
  }
  static Value schema() { return Value{{"type", "object"}, {"props", rules()}}; }

 private:
  template <std::size_t kAt>
  static constexpr auto field_at() {
    return std::get<kAt>(weft_fields(static_cast<const T*>(nullptr)));
  }

  template <std::size_t kAt, typename Seen>
  static bool try_member(TypedReader& reader, std::string_view name, T& out, Seen& seen) {
    constexpr auto kField = field_at<kAt>();
    if (name != kField.name) return false;
    seen[kAt] = true;
    reader.enter_member(kField.name);
    auto& slot = out.*(kField.member);
    Typed<std::remove_cvref_t<decltype(slot)>>::read(reader, reader.next(), slot);
    return true;
  }
  template <typename Seen, std::size_t... kAt>
  static bool read_member([[maybe_unused]] TypedReader& reader, [[maybe_unused]] std::string_view name,
                          [[maybe_unused]] T& out, [[maybe_unused]] Seen& seen, std::index_sequence<kAt...>) {
    return (try_member<kAt>(reader, name, out, seen) || ...);
  }
  template <std::size_t kAt, typename Seen>
  static void note_one_missing(TypedReader& reader, const Seen& seen) {
    constexpr auto kField = field_at<kAt>();
    using Slot = std::remove_cvref_t<decltype(std::declval<T&>().*(kField.member))>;
    if (!seen[kAt] && !kIsOptional<Slot>) reader.missing(kField.name);
  }
  template <typename Seen, std::size_t... kAt>
  static void note_missing([[maybe_unused]] TypedReader& reader, [[maybe_unused]] const Seen& seen,
                           std::index_sequence<kAt...>) {
    (note_one_missing<kAt>(reader, seen), ...);
  }

  template <typename M>
  static std::size_t present(const M& member) {
    if constexpr (kIsOptional<M>) return member.has_value() ? 1 : 0;
    return 1;
  }
  template <typename M>
  static void write_member(ValueWriter& writer, std::string_view name, const M& member) {
    if (present(member) == 0) return;  // An empty optional is left out, like JavaScript's undefined.
    writer.key(name);
    Typed<M>::write(writer, member);
  }
  template <typename Info>
  static void add_rule(Value& rules, const Info& field) {
    using Slot = std::remove_cvref_t<decltype(std::declval<T&>().*(field.member))>;
    rules.set(field.name, Typed<Slot>::schema());
  }
};

}  // namespace weft
