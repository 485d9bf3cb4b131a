#pragma once

#include "lib/value/token.h"
#include "lib/value/value.h"

namespace weft {

// Nesting a decoder accepts; deeper input is an error of that packet, never a crash.
inline constexpr int kValueDepthMax = 200;

// Reads the value whose first token is `first`. False on malformed or too deep input: `reader.error()` says
// why. Of a key that comes twice, the last wins.
[[nodiscard]] bool read_value(ValueReader& reader, const Token& first, Value& out);
[[nodiscard]] bool read_value(ValueReader& reader, Value& out);

void write_value(ValueWriter& writer, const Value& value);

// Walks a tree. The tree is borrowed and must not change meanwhile.
class TreeReader final : public ValueReader {
 public:
  explicit TreeReader(const Value& root) : pending_(&root) {}
  const Token& next() override;
  void skip() override;
  [[nodiscard]] std::string_view error() const override { return "end of value"; }

 private:
  struct Level {
    const Value* container;
    std::size_t index;
  };
  const Token& enter(const Value& value);

  const Value* pending_;  // The value next() is to enter, when no level says so.
  std::vector<Level> levels_;
  bool in_member_ = false;  // The key was given, its value comes next.
  Token token_;
};

// Builds a tree from writer calls.
class TreeWriter final : public ValueWriter {
 public:
  [[nodiscard]] Value take() { return std::move(root_); }

  void null() override { put(Value()); }
  void boolean(bool value) override { put(Value(value)); }
  void integer(std::int64_t value) override { put(Value(value)); }
  void unsigned_integer(std::uint64_t value) override { put(Value(value)); }
  void number(double value) override { put(Value(value)); }
  void string(std::string_view value) override { put(Value(value)); }
  void binary(std::string_view value) override { put(Value(Binary{std::string(value)})); }
  void timestamp(std::int64_t ms) override { put(Value(Timestamp{ms})); }
  void begin_array(std::size_t count) override;
  void end_array() override { close(); }
  void begin_object(std::size_t count) override;
  void key(std::string_view name) override { key_ = name; }
  void end_object() override { close(); }

 private:
  void put(Value value);
  void close();

  Value root_;
  std::vector<Value> open_;  // Containers under construction, outermost first.
  std::vector<std::string> open_keys_;
  std::string key_;
};

}  // namespace weft
