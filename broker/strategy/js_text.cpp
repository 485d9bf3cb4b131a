#include "broker/strategy/js_text.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "lib/value/iso_time.h"

namespace weft {

namespace {

template <typename Integer>
void append_integer(Integer value, std::string& out) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  out.append(text, end);
}

}  // namespace

void append_js_text(double number, std::string& out) {
  if (std::isnan(number)) {
    out += "NaN";
    return;
  }
  if (number < 0) out += '-';
  if (std::isinf(number)) {
    out += "Infinity";
    return;
  }
  // The fewest digits that read back as the same number: d.ddde±xx.
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof(text), std::abs(number), std::chars_format::scientific).ptr;
  const std::string_view shortest(text, end);
  const std::size_t e = shortest.find('e');
  std::string digits(1, shortest[0]);
  if (e > 2) digits += shortest.substr(2, e - 2);
  int exponent = 0;
  const char* sign = text + e + 1;
  std::from_chars(*sign == '+' ? sign + 1 : sign, end, exponent);

  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // Digits before the decimal point.
  if (count <= point && point <= 21) {
    out += digits;
    out.append(static_cast<std::size_t>(point - count), '0');
  } else if (point > 0 && point <= 21) {
    out += digits.substr(0, static_cast<std::size_t>(point));
    out += '.';
    out += digits.substr(static_cast<std::size_t>(point));
  } else if (point > -6 && point <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-point), '0');
    out += digits;
  } else {
    out += digits[0];
    if (count > 1) {
      out += '.';
      out += digits.substr(1);
    }
    out += exponent < 0 ? "e-" : "e+";
    append_integer(std::abs(exponent), out);
  }
}

void append_js_text(const Value& value, std::string& out) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      out += "null";
      return;
    case Value::Kind::kBool:
      out += value.boolean() ? "true" : "false";
      return;
    case Value::Kind::kInt:
      append_integer(value.i64(), out);
      return;
    case Value::Kind::kUint:
      append_integer(value.u64(), out);
      return;
    case Value::Kind::kDouble:
      append_js_text(value.f64(), out);
      return;
    case Value::Kind::kString:
      out += value.str();
      return;
    case Value::Kind::kBinary:
      out += value.binary();
      return;
    case Value::Kind::kTimestamp:
      out += to_iso_time(value.timestamp());
      return;
    case Value::Kind::kArray: {
      bool first = true;
      for (const Value& item : value.items()) {
        if (!first) out += ',';
        first = false;
        if (!item.is_null()) append_js_text(item, out);
      }
      return;
    }
    case Value::Kind::kObject:
      out += "[object Object]";
      return;
  }
}

}  // namespace weft
