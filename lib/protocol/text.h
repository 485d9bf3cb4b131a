#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weft {

// Text on the wire is UTF-8, with one concession: a surrogate without its other half, which JavaScript's
// strings may hold, is accepted in its three-byte form (WTF-8), so that such a string passes through
// unharmed.

[[nodiscard]] inline std::uint64_t load_word(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}
inline constexpr std::uint64_t kHighBits = 0x8080808080808080U;
inline constexpr std::uint64_t kLowBits = 0x0101010101010101U;

[[nodiscard]] inline bool is_ascii(std::string_view bytes) {
  const char* const begin = bytes.data();
  const std::size_t size = bytes.size();
  if (size >= sizeof(std::uint64_t)) {  // Words from the front, and one that ends where the bytes end.
    std::uint64_t seen = load_word(begin + size - sizeof(std::uint64_t));
    for (std::size_t at = 0; at + sizeof(std::uint64_t) < size; at += sizeof(std::uint64_t)) {
      seen |= load_word(begin + at);
    }
    return (seen & kHighBits) == 0;
  }
  unsigned seen = 0;
  for (const char c : bytes) seen |= static_cast<unsigned char>(c);
  return seen < 0x80;
}

// Length of the sequence that begins at `at`, or 0 when it is none. `at` is before `end`.
[[nodiscard]] std::size_t text_sequence(const char* at, const char* end);

[[nodiscard]] bool is_text_beyond_ascii(std::string_view bytes);
[[nodiscard]] inline bool is_text(std::string_view bytes) {
  return is_ascii(bytes) || is_text_beyond_ascii(bytes);
}

// Appends the code point (a lone surrogate too).
void append_code_point(std::string& out, std::uint32_t code_point);

}  // namespace weft
