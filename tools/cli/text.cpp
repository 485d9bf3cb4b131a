#include "tools/cli/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace weft::cli {

namespace {

constexpr char32_t kNoCharacter = 0xffffffff;

struct Character {
  char32_t code = kNoCharacter;  // kNoCharacter: no UTF-8.
  std::size_t bytes = 1;
};

// The character that begins at `at`.
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (bytes == 0 || lead >= 0xf5 || at + bytes > text.size()) return {};
  char32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    code = (code << 6) | (byte(at + i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, char32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t c, const Range& range) { return c < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

// The large blocks of Unicode; a rare character that is missing costs a crooked line, no more.
constexpr std::array<Range, 11> kCombining = {{{0x0300, 0x036f},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05bd},
                                               {0x064b, 0x065f},
                                               {0x1ab0, 0x1aff},
                                               {0x1dc0, 0x1dff},
                                               {0x200b, 0x200d},
                                               {0x20d0, 0x20ff},
                                               {0xfe00, 0xfe0f},
                                               {0xfe20, 0xfe2f},
                                               {0xe0100, 0xe01ef}}};
constexpr std::array<Range, 15> kWide = {{{0x1100, 0x115f},
                                          {0x231a, 0x231b},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0x4dbf},
                                          {0x4e00, 0xa4cf},
                                          {0xa960, 0xa97c},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6b},
                                          {0xff01, 0xff60},
                                          {0xffe0, 0xffe6},
                                          {0x1f300, 0x1f64f},
                                          {0x1f680, 0x1f6ff},
                                          {0x1f900, 0x1faff},
                                          {0x20000, 0x3fffd}}};

std::size_t width_of(char32_t code) {
  if (within(kCombining, code)) return 0;
  return within(kWide, code) ? 2 : 1;
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

// Characters that change the direction of what follows them, or its lines.
bool turns_writing(char32_t code) {
  return code == 0x200e || code == 0x200f || code == 0x061c || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

// Hands each character to `use` with its bytes.
template <typename Use>
void each_character(std::string_view text, Use use) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    use(character.code, text.substr(at, character.bytes));
    at += character.bytes;
  }
}

}  // namespace

std::size_t text_width(std::string_view text) {
  std::size_t width = 0;
  each_character(
      text, [&](char32_t code, std::string_view) { width += code == kNoCharacter ? 1 : width_of(code); });
  return width;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  each_character(text, [&](char32_t code, std::string_view bytes) {
    if (code == kNoCharacter) {
      shown += "\xef\xbf\xbd";
    } else if (code == '\n' || code == '\t' || code == '\r') {
      shown += ' ';
    } else if (is_control(code) || turns_writing(code)) {
      shown += '?';
    } else {
      shown += bytes;
    }
  });
  return shown;
}

std::string printable_json(std::string_view json) {
  std::string shown;
  shown.reserve(json.size());
  each_character(json, [&](char32_t code, std::string_view bytes) {
    if (code == '\n' || code == kNoCharacter || !(is_control(code) || turns_writing(code))) {
      shown += bytes;
      return;
    }
    std::array<char, 12> escape{};  // All of them lie below 0x10000; the compiler does not know it.
    std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(code));
    shown += escape.data();
  });
  return shown;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (text_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string cut;
  std::size_t used = 0;
  bool full = false;
  each_character(text, [&](char32_t code, std::string_view bytes) {
    const std::size_t more = code == kNoCharacter ? 1 : width_of(code);
    if (full || used + more > width - 1) {
      full = true;
      return;
    }
    used += more;
    cut += bytes;
  });
  return cut + "…";
}

std::size_t edit_distance(std::string_view one, std::string_view other) {
  // Rows of the table of distances between beginnings: the one before the last, the last, this one.
  std::vector<std::size_t> older(other.size() + 1), last(other.size() + 1), row(other.size() + 1);
  for (std::size_t k = 0; k <= other.size(); ++k) last[k] = k;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (std::size_t k = 1; k <= other.size(); ++k) {
      const bool same = one[i - 1] == other[k - 1];
      row[k] = std::min({last[k] + 1, row[k - 1] + 1, last[k - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && k > 1 && one[i - 1] == other[k - 2] && one[i - 2] == other[k - 1];
      if (swapped) row[k] = std::min(row[k], older[k - 2] + 1);
    }
    std::swap(older, last);
    std::swap(last, row);
  }
  return last[other.size()];
}

}  // namespace weft::cli
