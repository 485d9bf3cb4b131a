#include "tests/support/vectors.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "lib/base/assert.h"
#include "lib/protocol/serializer.h"

namespace weft::test {

namespace {

std::string from_base64(std::string_view text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(kAlphabet.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

double marked_number(std::string_view name) {
  if (name == "NaN") return std::nan("");
  if (name == "-0") return -0.0;
  const double infinity = std::numeric_limits<double>::infinity();
  return name == "Infinity" ? infinity : -infinity;
}

Value marked_map(const Value& pairs) {
  Value object = Value::object();
  for (const Value& pair : pairs.items()) {
    const Value key = without_markers(pair[0]);
    object.append_member(key.is_binary()    ? std::string(key.binary())
                         : key.is_integer() ? std::to_string(key.i64())
                                            : std::string(key.str()),
                         without_markers(pair[1]));
  }
  return object;
}

bool is_nothing(const Value& value) {
  return value.size() == 1 && (value.contains("$undefined") || value.contains("$absent"));
}

}  // namespace

Buffer load_vector(std::string_view file) {
  std::ifstream in(std::string(WEFT_TEST_VECTORS) + "/" + std::string(file), std::ios::binary);
  WEFT_ASSERT(in.is_open());
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return to_buffer(bytes);
}

Value load_json_vector(std::string_view file) {
  const Buffer text = load_vector(file);
  auto value = parse_json(text.view());
  WEFT_ASSERT(value.ok());
  return *std::move(value);
}

Value without_markers(const Value& value) {
  if (value.is_array()) {
    Value array = Value::array();
    for (const Value& item : value.items()) array.push_back(without_markers(item));
    return array;
  }
  if (!value.is_object()) return value;
  if (value.size() == 1) {
    const Member& only = value.members()[0];
    if (only.key == "$buffer" || only.key == "$uint8array") return Binary{from_base64(only.value.str())};
    if (only.key == "$date") return only.value.is_null() ? Value() : Value(Timestamp{only.value.i64()});
    if (only.key == "$number") return marked_number(only.value.str());
    if (only.key == "$map") return marked_map(only.value);
  }
  Value object = Value::object();
  for (const Member& member : value.members()) {
    if (!is_nothing(member.value)) object.append_member(member.key, without_markers(member.value));
  }
  return object;
}

Buffer from_hex(std::string_view hex) {
  Buffer bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

Buffer to_buffer(std::string_view bytes) {
  Buffer buffer;
  buffer.append(bytes);
  return buffer;
}

}  // namespace weft::test
