#include "lib/protocol/msgpack_cursor.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lib/protocol/text.h"
#include "lib/value/value_io.h"

namespace weft {

namespace {

constexpr const char* kTooDeep = "nested too deeply";

template <typename Unsigned>
Unsigned from_big_endian(Unsigned number) {
  if constexpr (std::endian::native == std::endian::big || sizeof number == 1) {
    return number;
  } else if constexpr (sizeof number == 2) {
    return __builtin_bswap16(number);
  } else if constexpr (sizeof number == 4) {
    return __builtin_bswap32(number);
  } else {
    return __builtin_bswap64(number);
  }
}

// Sets the milliseconds of a point in time; false when they do not fit.
bool set_timestamp(Token& out, std::int64_t seconds, std::uint32_t nanoseconds) {
  constexpr std::int64_t kSecondsMax = std::numeric_limits<std::int64_t>::max() / 1000 - 1;
  if (seconds > kSecondsMax || seconds < -kSecondsMax || nanoseconds >= 1'000'000'000) return false;
  out.kind = Token::Kind::kTimestamp;
  out.integer = seconds * 1000 + nanoseconds / 1'000'000;
  return true;
}

void set_unsigned(Token& out, std::uint64_t number) {
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    out.kind = Token::Kind::kUint;
    out.unsigned_integer = number;
  } else {
    out.kind = Token::Kind::kInt;
    out.integer = static_cast<std::int64_t>(number);
  }
}

}  // namespace

template <typename Number>
bool MsgpackCursor::take_number(Number& number) {
  if (sizeof number > static_cast<std::size_t>(end_ - at_)) return fail(kTruncated);
  std::make_unsigned_t<Number> wire = 0;
  std::memcpy(&wire, at_, sizeof wire);
  at_ += sizeof wire;
  number = static_cast<Number>(from_big_endian(wire));
  return true;
}

// A length, then as many bytes.
template <typename Length>
bool MsgpackCursor::take_run(Token& out, Token::Kind kind) {
  Length size = 0;
  out.kind = kind;
  return take_number(size) && take_bytes(size, out.text);
}

bool MsgpackCursor::take_extension(Token& out, std::size_t size) {
  std::int8_t type = 0;
  if (!take_number(type)) return false;
  if (type != -1) return fail("an extension type that is not known");
  std::uint32_t seconds32 = 0;
  std::uint32_t nanoseconds = 0;
  std::uint64_t packed = 0;
  std::int64_t seconds = 0;
  switch (size) {
    case 4:
      return take_number(seconds32) && set_timestamp(out, seconds32, 0);
    case 8: {
      constexpr int kSecondsBits = 34;
      constexpr std::uint64_t kSecondsMask = (std::uint64_t{1} << kSecondsBits) - 1;
      if (!take_number(packed)) return false;
      return set_timestamp(out, static_cast<std::int64_t>(packed & kSecondsMask),
                           static_cast<std::uint32_t>(packed >> kSecondsBits)) ||
             fail("a timestamp out of range");
    }
    case 12:
      if (!take_number(nanoseconds) || !take_number(seconds)) return false;
      return set_timestamp(out, seconds, nanoseconds) || fail("a timestamp out of range");
    default:
      return fail("a timestamp of an unknown length");
  }
}

bool MsgpackCursor::take_long(std::uint8_t head, Token& out, std::uint32_t& count) {
  const auto unsigned_number = [&](auto number) {
    if (!take_number(number)) return false;
    set_unsigned(out, number);
    return true;
  };
  const auto signed_number = [&](auto number) {
    if (!take_number(number)) return false;
    out.kind = Token::Kind::kInt;
    out.integer = number;
    return true;
  };
  const auto extension = [&](auto size) { return take_number(size) && take_extension(out, size); };
  const auto container = [&](Token::Kind kind, auto items) {
    return take_number(items) && take_container(out, kind, items, count);
  };
  switch (head) {
    case 0xc0:
      out.kind = Token::Kind::kNull;
      return true;
    case 0xc2:
    case 0xc3:
      out.kind = Token::Kind::kBool;
      out.boolean = head == 0xc3;
      return true;
    case 0xc4:
      return take_run<std::uint8_t>(out, Token::Kind::kBinary);
    case 0xc5:
      return take_run<std::uint16_t>(out, Token::Kind::kBinary);
    case 0xc6:
      return take_run<std::uint32_t>(out, Token::Kind::kBinary);
    case 0xc7:
      return extension(std::uint8_t{0});
    case 0xc8:
      return extension(std::uint16_t{0});
    case 0xc9:
      return extension(std::uint32_t{0});
    case 0xca: {
      std::uint32_t bits = 0;
      if (!take_number(bits)) return false;
      out.kind = Token::Kind::kDouble;
      out.number = static_cast<double>(std::bit_cast<float>(bits));
      return true;
    }
    case 0xcb: {
      std::uint64_t bits = 0;
      if (!take_number(bits)) return false;
      out.kind = Token::Kind::kDouble;
      out.number = std::bit_cast<double>(bits);
      return true;
    }
    case 0xcc:
      return unsigned_number(std::uint8_t{0});
    case 0xcd:
      return unsigned_number(std::uint16_t{0});
    case 0xce:
      return unsigned_number(std::uint32_t{0});
    case 0xcf:
      return unsigned_number(std::uint64_t{0});
    case 0xd0:
      return signed_number(std::int8_t{0});
    case 0xd1:
      return signed_number(std::int16_t{0});
    case 0xd2:
      return signed_number(std::int32_t{0});
    case 0xd3:
      return signed_number(std::int64_t{0});
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return take_extension(out, std::size_t{1} << (head - 0xd4));
    case 0xd9:
      return take_run<std::uint8_t>(out, Token::Kind::kString);
    case 0xda:
      return take_run<std::uint16_t>(out, Token::Kind::kString);
    case 0xdb:
      return take_run<std::uint32_t>(out, Token::Kind::kString);
    case 0xdc:
      return container(Token::Kind::kBeginArray, std::uint16_t{0});
    case 0xdd:
      return container(Token::Kind::kBeginArray, std::uint32_t{0});
    case 0xde:
      return container(Token::Kind::kBeginObject, std::uint16_t{0});
    case 0xdf:
      return container(Token::Kind::kBeginObject, std::uint32_t{0});
    default:
      return fail("the reserved byte 0xc1");
  }
}

bool MsgpackCursor::take_key(std::string_view& key, std::string& scratch) {
  Token token;
  std::uint32_t count = 0;
  if (!take(token, count)) return false;
  char digits[24];
  switch (token.kind) {
    case Token::Kind::kString:
    case Token::Kind::kBinary:
      key = token.text;
      return is_text(key) || fail("a key is not valid UTF-8");
    case Token::Kind::kInt:
      scratch.assign(digits, std::to_chars(digits, digits + sizeof digits, token.integer).ptr);
      break;
    case Token::Kind::kUint:
      scratch.assign(digits, std::to_chars(digits, digits + sizeof digits, token.unsigned_integer).ptr);
      break;
    default:
      return fail("a key that is no text");
  }
  key = scratch;
  return true;
}

bool MsgpackCursor::take_value(BytesView& value) {
  const char* const begin = at_;
  std::uint64_t left[kValueDepthMax + 1];  // Values still to pass over, on each level.
  left[0] = 1;
  int depth = 0;
  Token token;
  while (true) {
    while (left[depth] == 0) {
      if (depth == 0) {
        value = {begin, static_cast<std::size_t>(at_ - begin)};
        return true;
      }
      --depth;
    }
    --left[depth];
    std::uint32_t count = 0;
    if (!take(token, count)) return false;
    const bool is_object = token.kind == Token::Kind::kBeginObject;
    if (!is_object && token.kind != Token::Kind::kBeginArray) continue;
    if (depth == kValueDepthMax) return fail(kTooDeep);
    left[++depth] = is_object ? std::uint64_t{count} * 2 : count;
  }
}

}  // namespace weft
