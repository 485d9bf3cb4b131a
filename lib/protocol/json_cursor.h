#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/protocol/json_index.h"
#include "lib/protocol/text.h"
#include "lib/value/token.h"

namespace weft {

// A position in an indexed text.
class JsonCursor {
 public:
  void reset(BytesView text, const JsonIndex& index) {
    base_ = text.data();
    at_ = index.offsets();
    end_ = at_ + index.count();
  }

  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] std::size_t offset() const { return *at_; }
  // First character of the next element; NUL at the end.
  [[nodiscard]] char peek() const { return at_ != end_ ? base_[*at_] : '\0'; }
  void advance() { ++at_; }
  [[nodiscard]] bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  // The characters of the next element, a scalar. Not at the end.
  [[nodiscard]] std::string_view take_scalar() {
    const char* const begin = base_ + *at_;
    ++at_;
    const char* end = base_ + *at_;  // Behind the last element stands the length of the text.
    while (end[-1] <= ' ' && is_space(end[-1])) --end;
    return {begin, static_cast<std::size_t>(end - begin)};
  }
  // Passes over one value. Of containers only the nesting is looked at. False: there is no value here, or it
  // does not end, or it is nested too deeply.
  [[nodiscard]] bool take_value(BytesView& value);

 private:
  [[nodiscard]] static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  const char* base_ = nullptr;
  const std::uint32_t* at_ = nullptr;
  const std::uint32_t* end_ = nullptr;
};

// Reads one scalar as it stands in the text: a literal, a number, or a string with its quotes. Text with
// escapes is appended to `scratch` and seen there. False when it is none.
[[nodiscard]] bool read_json_scalar(std::string_view text, Token& out, std::string& scratch);

// Whether there is a backslash. kReadPadding readable bytes follow.
[[nodiscard]] inline bool has_json_escape(std::string_view text) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  constexpr std::size_t kShortMax = 64;
  if (text.size() > kShortMax) return std::memchr(text.data(), '\\', text.size()) != nullptr;
  std::uint64_t found = 0;
  const auto look = [&found](std::uint64_t word) {
    const std::uint64_t zero_where_escape = word ^ (kLowBits * '\\');
    found |= (zero_where_escape - kLowBits) & ~zero_where_escape & kHighBits;
  };
  std::size_t at = 0;
  for (; at + kWord <= text.size(); at += kWord) look(load_word(text.data() + at));
  if (const std::size_t rest = text.size() - at; rest > 0) {
    const std::size_t foreign_bits = 8 * (kWord - rest);  // Of bytes that follow the text.
    const std::uint64_t word = load_word(text.data() + at);
    look(std::endian::native == std::endian::little ? word << foreign_bits : word >> foreign_bits);
  }
  return found != 0;
}

// Appends what stands between the quotes, without escapes, to `scratch`. False on a bad escape.
[[nodiscard]] bool unescape_json(std::string_view raw, std::string& scratch);

// What stands between the quotes: seen where it is, or without its escapes in `scratch`. False on a bad
// escape.
[[nodiscard]] inline bool read_json_string(std::string_view quoted, std::string_view& out,
                                           std::string& scratch) {
  if (quoted.size() < 2 || quoted.back() != '"') return false;
  out = quoted.substr(1, quoted.size() - 2);
  if (!has_json_escape(out)) return true;
  const std::size_t begin = scratch.size();
  if (!unescape_json(out, scratch)) return false;
  out = std::string_view(scratch).substr(begin);
  return true;
}

}  // namespace weft
