#include "transporters/tcp/frame.h"

#include <algorithm>
#include <string>

#include "lib/base/assert.h"

namespace weft {

namespace {

constexpr std::size_t kKeptBytesMax = 64UL << 10;  // A buffer that one large frame made is given back.

// By frame number, from 1.
constexpr std::array<PacketType, 8> kPacketTypes = {
    PacketType::kEvent, PacketType::kRequest,       PacketType::kResponse,       PacketType::kPing,
    PacketType::kPong,  PacketType::kGossipRequest, PacketType::kGossipResponse, PacketType::kGossipHello,
};

std::uint8_t byte_at(const char* bytes, std::size_t index) {
  return static_cast<std::uint8_t>(bytes[index]);
}

std::uint8_t check_byte(const char* header) {
  std::uint8_t check = 0;
  for (std::size_t i = 1; i < kFrameHeaderBytes; ++i)
    check = static_cast<std::uint8_t>(check ^ byte_at(header, i));
  return check;
}

Error broken(std::string message) {
  return Error(ErrorClass::kBase, std::move(message), "BAD_FRAME");
}

}  // namespace

std::optional<std::uint8_t> frame_number(PacketType type) {
  const auto found = std::find(kPacketTypes.begin(), kPacketTypes.end(), type);
  if (found == kPacketTypes.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - kPacketTypes.begin() + 1);
}

FrameHeader make_frame_header(PacketType type, std::size_t payload_bytes) {
  const auto number = frame_number(type);
  const std::size_t length = payload_bytes + kFrameHeaderBytes;
  WEFT_ASSERT(number.has_value() && length <= 0x7fffffff);
  FrameHeader header{};
  for (std::size_t i = 0; i < 4; ++i) header[1 + i] = static_cast<char>((length >> (24 - 8 * i)) & 0xff);
  header[5] = static_cast<char>(*number);
  header[0] = static_cast<char>(check_byte(header.data()));
  return header;
}

Result<FrameDecoder::Header> FrameDecoder::read_header(const char* bytes) const {
  if (byte_at(bytes, 0) != check_byte(bytes)) return broken("frame header with a wrong check byte");
  const std::uint32_t length = (static_cast<std::uint32_t>(byte_at(bytes, 1)) << 24) |
                               (static_cast<std::uint32_t>(byte_at(bytes, 2)) << 16) |
                               (static_cast<std::uint32_t>(byte_at(bytes, 3)) << 8) | byte_at(bytes, 4);
  // A negative length has the highest bit set and is above every limit.
  if (length < kFrameHeaderBytes || length > frame_bytes_max_) {
    return broken("frame of " + std::to_string(static_cast<std::int32_t>(length)) +
                  " bytes, allowed are 6 to " + std::to_string(frame_bytes_max_));
  }
  const std::uint8_t number = byte_at(bytes, 5);
  if (number < 1 || number > kPacketTypes.size()) {
    return broken("frame of the unknown type " + std::to_string(number));
  }
  return Header{kPacketTypes[number - 1U], length};
}

Result<> FrameDecoder::feed(BytesView bytes, Sink sink) {
  if (!held_.empty()) {
    // Finish the frame that is held, in two steps: until its length is known, then to its end.
    if (held_.size() < kFrameHeaderBytes) {
      const std::size_t count = std::min(kFrameHeaderBytes - held_.size(), bytes.size());
      held_.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (held_.size() < kFrameHeaderBytes) return {};
    }
    const auto header = read_header(held_.data());
    if (!header.ok()) return header.error();
    const std::size_t count = std::min(header->frame_bytes - held_.size(), bytes.size());
    held_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (held_.size() < header->frame_bytes) return {};
    if (!sink(header->type, held_.view().substr(kFrameHeaderBytes))) return {};
    if (held_.capacity() > kKeptBytesMax) held_ = Buffer();
    held_.clear();
  }
  while (bytes.size() >= kFrameHeaderBytes) {
    const auto header = read_header(bytes.data());
    if (!header.ok()) return header.error();
    if (bytes.size() < header->frame_bytes) break;
    const BytesView payload = bytes.substr(kFrameHeaderBytes, header->frame_bytes - kFrameHeaderBytes);
    bytes.remove_prefix(header->frame_bytes);
    if (!sink(header->type, payload)) return {};
  }
  held_.append(bytes);
  return {};
}

}  // namespace weft
