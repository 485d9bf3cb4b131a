#pragma once

#include <string>

#include "lib/protocol/json_reader.h"
#include "lib/protocol/reader_pool.h"
#include "lib/protocol/serializer.h"

namespace weft {

// Packets as JSON text.
class JsonSerializer final : public Serializer {
 public:
  [[nodiscard]] std::string_view name() const override { return "JSON"; }

  [[nodiscard]] Result<> decode(BytesView message, RequestPacket& out) const override;
  [[nodiscard]] Result<> decode(BytesView message, ResponsePacket& out) const override;
  [[nodiscard]] Result<> decode(BytesView message, EventPacket& out) const override;
  [[nodiscard]] Result<> decode(BytesView message, Value& out) const override;

  [[nodiscard]] Result<> encode(const RequestPacket& packet, Buffer& out) const override;
  [[nodiscard]] Result<> encode(const ResponsePacket& packet, Buffer& out) const override;
  [[nodiscard]] Result<> encode(const EventPacket& packet, Buffer& out) const override;
  [[nodiscard]] Result<> encode(const Value& value, Buffer& out) const override;

  void read(BytesView bytes, FunctionRef<void(ValueReader&)> use) const override;

 private:
  template <typename Packet>
  [[nodiscard]] Result<> decode_packet(BytesView message, Packet& out) const;

  mutable JsonIndex index_;
  mutable std::string scratch_;  // Text of the last message's envelope that had escapes.
  mutable ReaderPool<JsonReader> readers_;
};

}  // namespace weft
