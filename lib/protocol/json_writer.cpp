#include "lib/protocol/json_writer.h"

#include <charconv>
#include <cmath>

#include "lib/protocol/text.h"
#include "lib/value/iso_time.h"
#include "lib/value/value_io.h"

namespace weft {

namespace {

constexpr std::int64_t kDateMsMax = 8'640'000'000'000'000;  // JavaScript's dates end here.

// How many bytes at the front of `text` stand for themselves between quotes: printable ASCII.
std::size_t clean_bytes(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (end - at >= 8) {
    const std::uint64_t word = load_word(at);
    const std::uint64_t special = word | (word - kLowBits * 0x20) | ((word ^ (kLowBits * '"')) - kLowBits) |
                                  ((word ^ (kLowBits * '\\')) - kLowBits);
    if ((special & kHighBits) != 0) break;
    at += 8;
  }
  while (at != end && static_cast<unsigned char>(*at) >= 0x20 && static_cast<unsigned char>(*at) < 0x80 &&
         *at != '"' && *at != '\\') {
    ++at;
  }
  return static_cast<std::size_t>(at - text.data());
}

template <typename Number>
void append_number(Buffer& out, Number value) {
  constexpr std::size_t kDigitsMax = 32;
  char* const begin = out.prepare(kDigitsMax);
  out.commit(static_cast<std::size_t>(std::to_chars(begin, begin + kDigitsMax, value).ptr - begin));
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
  append_number(out_, value);
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
  const std::size_t clean = clean_bytes(text);
  if (clean != text.size()) return quote_slowly(text, clean);
  char* const begin = out_.prepare(text.size() + 2);
  begin[0] = '"';
  if (!text.empty()) std::memcpy(begin + 1, text.data(), text.size());
  begin[1 + text.size()] = '"';
  out_.commit(text.size() + 2);
}

void JsonWriter::quote_slowly(std::string_view text, std::size_t clean) {
  out_.push_back('"');
  std::size_t written = 0;
  std::size_t at = clean;
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
    at += clean_bytes(text.substr(at));
  }
  out_.append(text.substr(written));
  out_.push_back('"');
}

}  // namespace weft
