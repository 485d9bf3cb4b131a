#include "lib/value/typed.h"

#include <charconv>
#include <cmath>

#include "lib/value/iso_time.h"

namespace weft {

namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kNull:
      return "null";
    case Token::Kind::kBool:
      return token.boolean ? "true" : "false";
    case Token::Kind::kInt:
      return std::to_string(token.integer);
    case Token::Kind::kUint:
      return std::to_string(token.unsigned_integer);
    case Token::Kind::kDouble: {
      char text[32];
      const auto end = std::to_chars(text, text + sizeof text, token.number).ptr;
      return {text, end};
    }
    case Token::Kind::kString: {
      constexpr std::size_t kShownMax =
          64;  // The violation goes back to the peer: no point in echoing megabytes.
      if (token.text.size() <= kShownMax) return std::string(token.text);
      std::size_t shown = kShownMax;
      while (shown > 0 && (static_cast<unsigned char>(token.text[shown]) & 0xc0) == 0x80)
        --shown;  // Whole characters.
      return std::string(token.text.substr(0, shown)) + "…";
    }
    case Token::Kind::kBinary:
      return "binary";
    case Token::Kind::kTimestamp:
      return "timestamp";
    case Token::Kind::kBeginArray:
      return "array";
    case Token::Kind::kBeginObject:
      return "object";
    default:
      return "malformed value";
  }
}

// Keys come from the peer, too.
std::string shown_path(const std::string& path) {
  constexpr std::size_t kShownMax = 512;
  if (path.size() <= kShownMax) return path;
  std::size_t shown = kShownMax;
  while (shown > 0 && (static_cast<unsigned char>(path[shown]) & 0xc0) == 0x80) --shown;  // Whole characters.
  return path.substr(0, shown) + "…";
}

}  // namespace

void TypedReader::skip_rest(const Token& first) {
  if (first.kind == Token::Kind::kError) return malformed();
  int depth = first.kind == Token::Kind::kBeginArray || first.kind == Token::Kind::kBeginObject ? 1 : 0;
  while (depth > 0) {
    switch (reader_.next().kind) {
      case Token::Kind::kBeginArray:
      case Token::Kind::kBeginObject:
        ++depth;
        break;
      case Token::Kind::kEndArray:
      case Token::Kind::kEndObject:
        --depth;
        break;
      case Token::Kind::kError:
        return malformed();
      default:
        break;
    }
  }
}

void TypedReader::mismatch(std::string_view type, std::string_view expected, const Token& actual) {
  if (actual.kind == Token::Kind::kError) return malformed();
  const std::string shown = describe(actual);
  const std::string where = path_.empty() ? "value" : "'" + shown_path(path_) + "' field";
  violation(type, "The " + where + " must be " + std::string(expected) + ".", shown);
  skip_rest(actual);
}

void TypedReader::violation(std::string_view type, std::string message, std::string actual) {
  constexpr std::size_t kViolationsMax =
      100;  // A peer's list of a million wrong items must not cost a million texts.
  if (violations_.size() >= kViolationsMax) return;
  violations_.push_back({std::string(type), std::move(message), shown_path(path_), std::move(actual)});
}

void TypedReader::missing(std::string_view name) {
  const std::size_t size = path_size();
  enter_member(name);
  violation("required", "The '" + shown_path(path_) + "' field is required.");
  leave(size);
}

void TypedReader::malformed() {
  malformed_ = true;
}

void TypedReader::enter_member(std::string_view name) {
  if (!path_.empty()) path_ += '.';
  path_ += name;
}

void TypedReader::enter_item(std::size_t index) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, index).ptr;
  path_ += '[';
  path_.append(text, end);
  path_ += ']';
}

bool read_signed(TypedReader& reader, const Token& first, std::int64_t min, std::int64_t max,
                 std::int64_t& out) {
  std::int64_t value = 0;
  if (first.kind == Token::Kind::kInt) {
    value = first.integer;
  } else if (first.kind == Token::Kind::kDouble && first.number >= -0x1p63 && first.number < 0x1p63 &&
             std::trunc(first.number) == first.number) {
    value = static_cast<std::int64_t>(first.number);
  } else if (first.kind == Token::Kind::kDouble) {
    reader.mismatch("numberInteger", "an integer", first);
    return false;
  } else {
    reader.mismatch("number", "a number", first);
    return false;
  }
  if (value < min || value > max) {
    reader.violation(value < min ? "numberMin" : "numberMax",
                     "The number is outside " + std::to_string(min) + " to " + std::to_string(max) + ".",
                     std::to_string(value));
    return false;
  }
  out = value;
  return true;
}

bool read_unsigned(TypedReader& reader, const Token& first, std::uint64_t max, std::uint64_t& out) {
  std::uint64_t value = 0;
  if (first.kind == Token::Kind::kUint) {
    value = first.unsigned_integer;
  } else if (first.kind == Token::Kind::kDouble && first.number >= 0x1p63 && first.number < 0x1p64) {
    value = static_cast<std::uint64_t>(first.number);
  } else {
    std::int64_t integer = 0;
    if (!read_signed(reader, first, 0, INT64_MAX, integer)) return false;
    value = static_cast<std::uint64_t>(integer);
  }
  if (value > max) {
    reader.violation("numberMax", "The number is above " + std::to_string(max) + ".", std::to_string(value));
    return false;
  }
  out = value;
  return true;
}

void Typed<Binary>::read(TypedReader& reader, const Token& first, Binary& out) {
  if (first.kind == Token::Kind::kBinary) {
    out.bytes.assign(first.text);
    return;
  }
  if (first.kind != Token::Kind::kBeginObject) return reader.mismatch("binary", "binary", first);
  Value buffer;
  if (!read_value(reader.value_reader(), first, buffer)) return reader.malformed();
  const auto data = buffer["data"].items();
  bool valid = buffer["type"].str_or({}) == "Buffer" && buffer["data"].is_array();
  out.bytes.clear();
  for (const Value& byte : data) {
    const std::int64_t number = byte.i64_or(-1);
    valid = valid && number >= 0 && number <= 255;
    out.bytes.push_back(static_cast<char>(number));
  }
  if (!valid) reader.violation("binary", "The value must be binary.", "object");
}

void Typed<Timestamp>::read(TypedReader& reader, const Token& first, Timestamp& out) {
  constexpr std::int64_t kMsMax = 8'640'000'000'000'000;  // JavaScript's: beyond it there is no text for it.
  const bool is_whole = first.kind == Token::Kind::kTimestamp || first.kind == Token::Kind::kInt;
  if (is_whole && first.integer >= -kMsMax && first.integer <= kMsMax) {
    out.ms = first.integer;
  } else if (first.kind == Token::Kind::kDouble && std::abs(first.number) < 8.64e15) {
    out.ms = static_cast<std::int64_t>(first.number);
  } else if (first.kind == Token::Kind::kString) {
    const auto parsed = parse_iso_time(first.text);
    if (!parsed) return reader.mismatch("date", "a date", first);
    out = *parsed;
  } else {
    reader.mismatch("date", "a date", first);
  }
}

void Typed<Value>::read(TypedReader& reader, const Token& first, Value& out) {
  if (!read_value(reader.value_reader(), first, out)) reader.malformed();
}

}  // namespace weft
