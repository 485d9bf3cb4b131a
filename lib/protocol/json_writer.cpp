#include "lib/protocol/json_writer.h"

#include <charconv>
#include <cmath>

#include "lib/protocol/text.h"
#include "lib/value/iso_time.h"
#include "lib/value/value_io.h"

namespace weft {

namespace {

constexpr std::int64_t kDateMsMax = 8'640'000'000'000'000;  // JavaScript's dates end here.

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' &&
         c != '\\';
}

// Nonzero when not all bytes of the word are plain.
std::uint64_t special_bytes(std::uint64_t word) {
  return (word | (word - kLowBits * 0x20) | ((word ^ (kLowBits * '"')) - kLowBits) |
          ((word ^ (kLowBits * '\\')) - kLowBits)) &
         kHighBits;
}

// Whether all of `text` stands for itself between quotes: printable ASCII.
bool is_plain(std::string_view text) {
  const char* const begin = text.data();
  const std::size_t size = text.size();
  if (size >= 8) {  // Words from the front, and one that ends where the text ends.
    std::uint64_t special = special_bytes(load_word(begin + size - 8));
    for (std::size_t at = 0; at + 8 < size; at += 8) special |= special_bytes(load_word(begin + at));
    return special == 0;
  }
  if (size >= 4) {
    std::uint32_t front = 0;
    std::uint32_t back = 0;
    std::memcpy(&front, begin, 4);
    std::memcpy(&back, begin + size - 4, 4);
    return special_bytes(std::uint64_t{back} << 32 | front) == 0;
  }
  for (const char c : text) {
    if (!is_plain(c)) return false;
  }
  return true;
}

std::size_t plain_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at + 8 <= text.size() && special_bytes(load_word(text.data() + at)) == 0) at += 8;
  while (at < text.size() && is_plain(text[at])) ++at;
  return at;
}

template <typename Number>
void append_number(Buffer& out, Number value) {
  constexpr std::size_t kDigitsMax = 32;
  char* const begin = out.prepare(kDigitsMax);
  out.commit(static_cast<std::size_t>(std::to_chars(begin, begin + kDigitsMax, value).ptr - begin));
}

// Writes a number of few decimals, 1.25 or 0.001, with as many digits as it has; false when it is none.
//
// The shortest text by another way: of all decimals of up to 15 digits, no two are the same double, so the
// one found here is the one std::to_chars would find, at a fifth of the cost.
bool append_short_decimal(Buffer& out, double value) {
  constexpr double kScale = 1e6;
  constexpr double kMax = 1e8;
  if (!(std::abs(value) < kMax)) return false;
  const double scaled = std::nearbyint(std::abs(value) * kScale);
  if (scaled / kScale != std::abs(value) || value == 0) return false;
  auto digits = static_cast<std::uint64_t>(scaled);
  int decimals = 6;
  while (decimals > 0 && digits % 10 == 0) {
    digits /= 10;
    --decimals;
  }
  char text[24];
  char* at = text + sizeof text;
  for (int written = 0; digits > 0 || written <= decimals; ++written) {
    if (written == decimals && decimals > 0) *--at = '.';
    *--at = static_cast<char>('0' + digits % 10);
    digits /= 10;
  }
  if (value < 0) *--at = '-';
  out.append({at, static_cast<std::size_t>(text + sizeof text - at)});
  return true;
}

void append_unicode_escape(Buffer& out, unsigned unit) {
  constexpr char kHex[] = "0123456789abcdef";
  const char text[] = {'\\',           'u', kHex[unit >> 12 & 15], kHex[unit >> 8 & 15], kHex[unit >> 4 & 15],
                       kHex[unit & 15]};
  out.append({text, sizeof text});
}

void append_escape(Buffer& out, char c) {
  switch (c) {
    case '"':
      return out.append("\\\"");
    case '\\':
      return out.append("\\\\");
    case '\b':
      return out.append("\\b");
    case '\f':
      return out.append("\\f");
    case '\n':
      return out.append("\\n");
    case '\r':
      return out.append("\\r");
    case '\t':
      return out.append("\\t");
    default:
      return append_unicode_escape(out, static_cast<unsigned char>(c));
  }
}

}  // namespace

void JsonWriter::null() {
  before_value();
  out_.append("null");
}

void JsonWriter::boolean(bool value) {
  before_value();
  out_.append(value ? "true" : "false");
}

void JsonWriter::integer(std::int64_t value) {
  before_value();
  append_number(out_, value);
}

void JsonWriter::unsigned_integer(std::uint64_t value) {
  before_value();
  append_number(out_, value);
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  constexpr double kIntegerMax = 1e15;
  if (std::abs(value) < kIntegerMax && value == std::trunc(value) && !(value == 0 && std::signbit(value))) {
    append_number(out_, static_cast<std::int64_t>(value));  // Without an exponent, as JavaScript does.
  } else if (!append_short_decimal(out_, value)) {
    append_number(out_, value);
  }
}

void JsonWriter::string(std::string_view value) {
  before_value();
  quote(value);
}

void JsonWriter::binary(std::string_view value) {
  before_value();
  out_.append(R"({"type":"Buffer","data":[)");
  for (std::size_t i = 0; i < value.size(); ++i) {
    char* const begin = out_.prepare(4);
    char* at = begin;
    if (i > 0) *at++ = ',';
    at = std::to_chars(at, begin + 4, static_cast<unsigned char>(value[i])).ptr;
    out_.commit(static_cast<std::size_t>(at - begin));
  }
  out_.append("]}");
}

void JsonWriter::timestamp(std::int64_t ms) {
  if (ms > kDateMsMax || ms < -kDateMsMax) return null();
  before_value();
  out_.push_back('"');
  out_.append(to_iso_time(Timestamp{ms}));
  out_.push_back('"');
}

void JsonWriter::key(std::string_view name) {
  if (comma_) separate();
  if (indent_ > 0 && !comma_) break_line();
  quote(name);
  out_.push_back(':');
  if (indent_ > 0) out_.push_back(' ');
  comma_ = false;
}

void JsonWriter::separate() {
  out_.push_back(',');
  if (indent_ > 0) break_line();
}

void JsonWriter::break_line() {
  out_.push_back('\n');
  for (int i = 0; i < depth_ * indent_; ++i) out_.push_back(' ');
}

void JsonWriter::open(char bracket, std::size_t count) {
  before_value();
  out_.push_back(bracket);
  ++depth_;
  if (depth_ > kValueDepthMax && mode_ == Mode::kStrict) failure_ = "nested too deeply";
  comma_ = false;
  empty_ = count == 0;
  if (indent_ > 0 && bracket == '[' && !empty_) break_line();
}

void JsonWriter::close(char bracket) {
  --depth_;
  if (indent_ > 0 && !empty_) break_line();
  out_.push_back(bracket);
  empty_ = false;
  comma_ = true;
}

void JsonWriter::quote(std::string_view text) {
  if (!is_plain(text)) return quote_slowly(text);
  char* const begin = out_.prepare(text.size() + 2);
  begin[0] = '"';
  if (!text.empty()) std::memcpy(begin + 1, text.data(), text.size());
  begin[1 + text.size()] = '"';
  out_.commit(text.size() + 2);
}

void JsonWriter::quote_slowly(std::string_view text) {
  out_.push_back('"');
  std::size_t written = 0;
  std::size_t at = plain_bytes(text);
  while (at < text.size()) {
    const char* const here = text.data() + at;
    const std::size_t length = text_sequence(here, text.data() + text.size());
    const auto lead = static_cast<unsigned char>(*here);
    const bool is_surrogate = length == 3 && lead == 0xed && static_cast<unsigned char>(here[1]) >= 0xa0;
    if (length > 1 && !is_surrogate) {
      at += length;
    } else {
      out_.append(text.substr(written, at - written));
      if (is_surrogate) {
        append_unicode_escape(out_, 0xd000U | (static_cast<unsigned>(here[1]) & 0x3fU) << 6 |
                                        (static_cast<unsigned>(here[2]) & 0x3fU));
      } else if (length == 1) {
        append_escape(out_, *here);
      } else {
        if (mode_ == Mode::kStrict) failure_ = "text is not valid UTF-8";
        out_.append("\xef\xbf\xbd");
      }
      at += length == 0 ? 1 : length;
      written = at;
    }
    if (at < text.size() && is_plain(text[at])) at += plain_bytes(text.substr(at));
  }
  out_.append(text.substr(written));
  out_.push_back('"');
}

}  // namespace weft
