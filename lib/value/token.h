#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

// One step through a value: a scalar, or an edge of an array or object. `text` holds a string's, a key's or a
// binary's bytes and is valid until the reader moves on.
struct Token {
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInt,
    kUint,  // Above 2^63-1.
    kDouble,
    kString,
    kBinary,
    kTimestamp,
    kBeginArray,
    kEndArray,
    kBeginObject,
    kKey,
    kEndObject,
    kError,  // Malformed input; every later token is kError too.
  };

  Kind kind = Kind::kError;
  union {
    bool boolean;
    std::int64_t integer = 0;  // Also the milliseconds of a timestamp.
    std::uint64_t unsigned_integer;
    double number;
  };
  std::string_view text;
};

// Pulls a value out of bytes or out of a tree, token by token. The three forms of a value (JSON, MessagePack,
// Value) each have one, so a struct or a Value is read by the same code from all of them.
class ValueReader {
 public:
  virtual ~ValueReader() = default;
  // The next token. The reference is valid until the next call.
  virtual const Token& next() = 0;
  // Passes over the value that would come next. After a kKey: that key's value.
  virtual void skip() = 0;
  // Why the last token was kError.
  [[nodiscard]] virtual std::string_view error() const = 0;
};

// Takes a value token by token. Calls come in the order of a well-formed value; counts are exact.
class ValueWriter {
 public:
  virtual ~ValueWriter() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void integer(std::int64_t value) = 0;
  virtual void unsigned_integer(std::uint64_t value) = 0;
  virtual void number(double value) = 0;
  virtual void string(std::string_view value) = 0;
  virtual void binary(std::string_view value) = 0;
  virtual void timestamp(std::int64_t ms) = 0;
  virtual void begin_array(std::size_t count) = 0;
  virtual void end_array() = 0;
  virtual void begin_object(std::size_t count) = 0;
  virtual void key(std::string_view name) = 0;
  virtual void end_object() = 0;
};

}  // namespace weft
