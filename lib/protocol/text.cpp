#include "lib/protocol/text.h"

#include <bit>

namespace weft {

namespace {

unsigned byte_at(const char* at) {
  return static_cast<unsigned char>(*at);
}

bool continues(const char* at, unsigned low = 0x80, unsigned high = 0xbf) {
  return byte_at(at) >= low && byte_at(at) <= high;
}

}  // namespace

std::size_t text_sequence(const char* at, const char* end) {
  const unsigned lead = byte_at(at);
  const auto left = end - at;
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return left >= 2 && continues(at + 1) ? 2 : 0;
  if (lead < 0xf0) {
    if (left < 3 || !continues(at + 1, lead == 0xe0 ? 0xa0 : 0x80) || !continues(at + 2)) return 0;
    return 3;
  }
  if (lead < 0xf5) {
    if (left < 4 || !continues(at + 1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf)) return 0;
    return continues(at + 2) && continues(at + 3) ? 4 : 0;
  }
  return 0;
}

bool is_text_beyond_ascii(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at != end) {
    if (end - at >= 8) {
      const std::uint64_t high = load_word(at) & kHighBits;
      if (high == 0) {
        at += 8;
        continue;
      }
      if constexpr (std::endian::native == std::endian::little) at += std::countr_zero(high) / 8;
    }
    const std::size_t length = byte_at(at) < 0x80 ? 1 : text_sequence(at, end);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void append_code_point(std::string& out, std::uint32_t code_point) {
  const auto tail = [&out](std::uint32_t bits) { out.push_back(static_cast<char>(0x80 | (bits & 0x3f))); };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (code_point >> 6)));
    tail(code_point);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (code_point >> 12)));
    tail(code_point >> 6);
    tail(code_point);
  } else {
    out.push_back(static_cast<char>(0xf0 | (code_point >> 18)));
    tail(code_point >> 12);
    tail(code_point >> 6);
    tail(code_point);
  }
}

}  // namespace weft
