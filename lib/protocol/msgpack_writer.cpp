#include "lib/protocol/msgpack_writer.h"

#include <bit>
#include <limits>
#include <msgpack.hpp>

#include "lib/protocol/text.h"
#include "lib/value/value_io.h"

namespace weft {

namespace {

// What msgpack-c writes to.
struct Sink {
  Buffer& out;
  void write(const char* bytes, std::size_t size) { out.append({bytes, size}); }
};

struct Packer {
  explicit Packer(Buffer& out) : sink{out}, packer(sink) {}
  msgpack::packer<Sink>* operator->() { return &packer; }
  Sink sink;
  msgpack::packer<Sink> packer;
};

}  // namespace

bool MsgpackWriter::fits(std::size_t count) {
  if (count <= std::numeric_limits<std::uint32_t>::max()) return true;
  failure_ = "a value has more than 2^32-1 bytes or items";
  return false;
}

void MsgpackWriter::enter() {
  if (++depth_ > kValueDepthMax) failure_ = "nested too deeply";
}

void MsgpackWriter::null() {
  out_.push_back('\xc0');
}

void MsgpackWriter::boolean(bool value) {
  out_.push_back(value ? '\xc3' : '\xc2');
}

void MsgpackWriter::integer(std::int64_t value) {
  Packer(out_)->pack_int64(value);
}

void MsgpackWriter::unsigned_integer(std::uint64_t value) {
  Packer(out_)->pack_uint64(value);
}

void MsgpackWriter::number(double value) {
  // Not msgpack-c's pack_double: that one turns numbers without fraction into integers, and loses -0.0.
  const auto bits = std::bit_cast<std::uint64_t>(value);
  char* at = out_.prepare(9);
  *at++ = '\xcb';
  for (int shift = 56; shift >= 0; shift -= 8) *at++ = static_cast<char>(bits >> shift & 0xff);
  out_.commit(9);
}

void MsgpackWriter::string(std::string_view value) {
  if (!is_text(value)) failure_ = "text is not valid UTF-8";
  if (!fits(value.size())) return;
  const auto size = static_cast<std::uint32_t>(value.size());
  Packer(out_)->pack_str(size);
  out_.append(value);
}

void MsgpackWriter::binary(std::string_view value) {
  if (!fits(value.size())) return;
  const auto size = static_cast<std::uint32_t>(value.size());
  Packer(out_)->pack_bin(size);
  out_.append(value);
}

void MsgpackWriter::timestamp(std::int64_t ms) {
  constexpr std::int64_t kMsPerSecond = 1000;
  constexpr int kSecondsBits = 34;
  constexpr std::int8_t kTimestampType = -1;
  std::int64_t seconds = ms / kMsPerSecond;
  std::int64_t rest = ms % kMsPerSecond;
  if (rest < 0) {
    rest += kMsPerSecond;
    --seconds;
  }
  const auto nanoseconds = static_cast<std::uint32_t>(rest) * 1'000'000U;
  char body[12];
  const auto put = [&body](std::size_t at, std::uint64_t number, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      body[at + i] = static_cast<char>(number >> 8 * (size - 1 - i) & 0xff);
  };
  std::size_t size = 0;
  if (seconds < 0 || seconds >> kSecondsBits != 0) {
    size = 12;
    put(0, nanoseconds, 4);
    put(4, static_cast<std::uint64_t>(seconds), 8);
  } else if (nanoseconds != 0 || seconds > std::numeric_limits<std::uint32_t>::max()) {
    size = 8;
    put(0, std::uint64_t{nanoseconds} << kSecondsBits | static_cast<std::uint64_t>(seconds), 8);
  } else {
    size = 4;
    put(0, static_cast<std::uint64_t>(seconds), 4);
  }
  Packer(out_)->pack_ext(size, kTimestampType);
  out_.append({body, size});
}

void MsgpackWriter::begin_array(std::size_t count) {
  enter();
  if (fits(count)) Packer(out_)->pack_array(static_cast<std::uint32_t>(count));
}

void MsgpackWriter::begin_object(std::size_t count) {
  enter();
  if (fits(count)) Packer(out_)->pack_map(static_cast<std::uint32_t>(count));
}

}  // namespace weft
