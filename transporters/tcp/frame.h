#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "lib/base/buffer.h"
#include "lib/base/function_ref.h"
#include "lib/error/result.h"
#include "lib/protocol/packet.h"

namespace weft {

// The frame around one packet; its bytes are described in PROTOCOL.md.

inline constexpr std::size_t kFrameHeaderBytes = 6;
using FrameHeader = std::array<char, kFrameHeaderBytes>;

// The number of a packet type in a frame; nothing for those that do not travel over TCP.
[[nodiscard]] std::optional<std::uint8_t> frame_number(PacketType type);

// `type` has a frame number; `payload_bytes` fits 31 bits together with the header.
[[nodiscard]] FrameHeader make_frame_header(PacketType type, std::size_t payload_bytes);

// Cuts a stream of bytes into packets, however it was split on its way.
//
// Whole frames are handed on where they lie; only a frame's torn beginning is copied, and memory grows with
// the bytes that have come, not with the length that was promised.
class FrameDecoder {
 public:
  // False stops the decoder: it may have been destroyed by the call and touches nothing any more.
  using Sink = FunctionRef<bool(PacketType type, BytesView payload)>;

  // `frame_bytes_max` bounds the declared length of one frame, header included.
  explicit FrameDecoder(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  // `bytes` has kReadPadding readable bytes behind it, and so has each payload handed to `sink`. An error
  // means that the stream is out of step for good.
  [[nodiscard]] Result<> feed(BytesView bytes, Sink sink);

  // Of a frame that is not whole yet.
  [[nodiscard]] std::size_t held_bytes() const { return held_.size(); }

 private:
  struct Header {
    PacketType type;
    std::size_t frame_bytes;
  };
  [[nodiscard]] Result<Header> read_header(const char* bytes) const;

  const std::size_t frame_bytes_max_;
  Buffer held_;
};

}  // namespace weft
