#include "lib/protocol/json_cursor.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "lib/value/value_io.h"

namespace weft {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The value of a number too large or too small for a double, whose text is known to be well formed.
double out_of_range(std::string_view text) {
  const bool negative = text.front() == '-';
  const std::size_t exponent_at = text.find_first_of("eE");
  const std::string_view mantissa = text.substr(negative ? 1 : 0, exponent_at - (negative ? 1 : 0));
  // Where the first digit that counts stands, seen from the point: 12.3 → 1, 0.01 → -2.
  std::ptrdiff_t magnitude = 0;
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first != std::string_view::npos) {
    magnitude = static_cast<std::ptrdiff_t>(point) - static_cast<std::ptrdiff_t>(first);
  }
  if (exponent_at != std::string_view::npos) {
    std::string_view digits = text.substr(exponent_at + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    const bool is_small = digits.front() == '-';
    std::int64_t exponent = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc()) {
      exponent =
          is_small ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
      exponent *= 1000;
    }
    magnitude += exponent;
  }
  const double size = magnitude > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return negative ? -size : size;
}

bool read_double(std::string_view text, Token& out) {
  out.kind = Token::Kind::kDouble;
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  out.number = error == std::errc::result_out_of_range ? out_of_range(text) : number;
  return true;
}

bool read_number(std::string_view text, Token& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = *at == '-';
  if (negative) ++at;
  const char* const digits = at;
  std::uint64_t number = 0;
  while (at != end && is_digit(*at)) number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
  const auto count = at - digits;
  if (count == 0 || (*digits == '0' && count > 1)) return false;
  if (at == end) {
    // 19 digits always fit 64 bits; 20 may.
    bool fits = count < 20;
    if (count == 20) fits = std::from_chars(digits, end, number).ec == std::errc();
    if (!fits || (negative && (number == 0 || number > std::uint64_t{1} << 63)))
      return read_double(text, out);
    if (negative || number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      out.kind = Token::Kind::kInt;
      out.integer = static_cast<std::int64_t>(negative ? std::uint64_t{0} - number : number);
    } else {
      out.kind = Token::Kind::kUint;
      out.unsigned_integer = number;
    }
    return true;
  }
  if (*at == '.') {
    ++at;
    if (at == end || !is_digit(*at)) return false;
    while (at != end && is_digit(*at)) ++at;
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    if (at == end || !is_digit(*at)) return false;
    while (at != end && is_digit(*at)) ++at;
  }
  return at == end && read_double(text, out);
}

bool read_hex(std::string_view text, std::size_t at, std::uint32_t& unit) {
  if (text.size() - at < 4) return false;
  const char* const begin = text.data() + at;
  return std::from_chars(begin, begin + 4, unit, 16).ptr == begin + 4;
}

}  // namespace

bool unescape_json(std::string_view raw, std::string& scratch) {
  std::size_t escape = raw.find('\\');
  std::size_t at = 0;
  while (escape != std::string_view::npos) {
    scratch.append(raw, at, escape - at);
    at = escape + 2;
    if (at > raw.size()) return false;
    switch (raw[escape + 1]) {
      case '"':
      case '\\':
      case '/':
        scratch.push_back(raw[escape + 1]);
        break;
      case 'b':
        scratch.push_back('\b');
        break;
      case 'f':
        scratch.push_back('\f');
        break;
      case 'n':
        scratch.push_back('\n');
        break;
      case 'r':
        scratch.push_back('\r');
        break;
      case 't':
        scratch.push_back('\t');
        break;
      case 'u': {
        std::uint32_t unit = 0;
        if (!read_hex(raw, at, unit)) return false;
        at += 4;
        std::uint32_t low = 0;
        if (unit >= 0xd800 && unit < 0xdc00 && raw.substr(at, 2) == "\\u" && read_hex(raw, at + 2, low) &&
            low >= 0xdc00 && low < 0xe000) {
          unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
          at += 6;
        }
        append_code_point(scratch, unit);
        break;
      }
      default:
        return false;
    }
    escape = raw.find('\\', at);
  }
  scratch.append(raw, at);
  return true;
}

bool read_json_scalar(std::string_view text, Token& out, std::string& scratch) {
  switch (text.front()) {
    case '"':
      out.kind = Token::Kind::kString;
      return read_json_string(text, out.text, scratch);
    case 't':
      out.kind = Token::Kind::kBool;
      out.boolean = true;
      return text == "true";
    case 'f':
      out.kind = Token::Kind::kBool;
      out.boolean = false;
      return text == "false";
    case 'n':
      out.kind = Token::Kind::kNull;
      return text == "null";
    default:
      return read_number(text, out);
  }
}

bool JsonCursor::take_value(BytesView& value) {
  const char first = peek();
  if (first == '{' || first == '[') {
    const std::size_t begin = *at_;
    int depth = 0;
    do {
      if (at_ == end_) return false;
      const char c = base_[*at_];
      if (c == '{' || c == '[') {
        if (++depth > kValueDepthMax) return false;
      } else if (c == '}' || c == ']') {
        --depth;
      }
      ++at_;
    } while (depth > 0);
    value = {base_ + begin, at_[-1] + 1 - begin};
    return true;
  }
  if (at_end()) return false;
  value = take_scalar();
  if (first == '"') return value.size() >= 2 && value.back() == '"';
  Token token;
  std::string unused;
  return read_json_scalar(value, token, unused);
}

}  // namespace weft
