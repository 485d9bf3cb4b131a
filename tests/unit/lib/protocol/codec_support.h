#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/protocol/serializer.h"
#include "tests/support/vectors.h"

namespace weft::test {

inline constexpr std::string_view kSerializers[] = {"JSON", "MsgPack"};

inline std::unique_ptr<Serializer> serializer_of(std::string_view name) {
  return std::move(make_serializer(name)).value();
}

inline Buffer encoded(const Serializer& serializer, const Value& value) {
  Buffer out;
  const auto result = serializer.encode(value, out);
  REQUIRE_MESSAGE(result.ok(), result.error().to_string());
  return out;
}

inline Value decoded(const Serializer& serializer, BytesView bytes) {
  Value value;
  const auto result = serializer.decode(bytes, value);
  REQUIRE_MESSAGE(result.ok(), result.error().to_string());
  return value;
}

// Bytes in a block of their very own size: nothing but the promised padding may be touched behind them, and
// that is filled with bytes that would change the meaning of the message.
class TightBytes {
 public:
  TightBytes(std::string_view bytes, char padding)
      : data_(new char[bytes.size() + kReadPadding]), size_(bytes.size()) {
    std::memcpy(data_.get(), bytes.data(), bytes.size());
    std::memset(data_.get() + size_, padding, kReadPadding);
  }
  [[nodiscard]] BytesView view() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_;
};

// Arrays within arrays, `depth` of them.
inline Value nested_arrays(int depth) {
  Value value = Value::array();
  for (int i = 1; i < depth; ++i) {
    Value outer = Value::array();
    outer.push_back(std::move(value));
    value = std::move(outer);
  }
  return value;
}

}  // namespace weft::test
