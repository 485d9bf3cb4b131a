#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/protocol/payload.h"

namespace weft {

inline constexpr std::string_view kProtocolVersion = "5";

enum class PacketType : std::uint8_t {
  kEvent,
  kRequest,
  kResponse,
  kDiscover,
  kInfo,
  kDisconnect,
  kHeartbeat,
  kPing,
  kPong,
  kGossipHello,
  kGossipRequest,
  kGossipResponse,
};
inline constexpr int kPacketTypeCount = 12;

// The name on the wire: "EVENT", "REQ", "RES", "DISCOVER", "GOSSIP_HELLO" …
[[nodiscard]] std::string_view to_string(PacketType type);
[[nodiscard]] std::optional<PacketType> packet_type_from(std::string_view name);

// The packets of the hot path, decoded into views. Every view and borrowed Payload points into the message
// (or into the serializer's scratch space) and is valid until the serializer decodes the next one. Text that
// may be null on the wire is empty here. An `ver` that is no text is empty.

struct RequestPacket {
  std::string_view ver = kProtocolVersion;
  std::string_view sender;
  std::string_view id;
  std::string_view action;
  Payload params;
  Payload meta;                      // Absent means {}.
  Payload headers;                   // Absent means {}.
  std::optional<double> timeout_ms;  // 0: none. Absent: the callee's own default applies.
  int level = 1;
  std::optional<bool> tracing;
  std::string_view parent_id;
  std::string_view request_id;
  std::string_view caller;
  bool has_stream = true;  // Whether the `stream` key is there.
  bool stream = false;
  std::optional<std::int64_t> seq;
};

struct ResponsePacket {
  std::string_view ver = kProtocolVersion;
  std::string_view sender;
  std::string_view id;
  bool success = true;
  Payload data;   // Absent: the handler returned nothing. Null is null.
  Payload error;  // The error object; absent on success.
  Payload meta;
  Payload headers;
  bool headers_null = false;   // Write `headers` as null: the request failed before a context was made.
  std::optional<bool> stream;  // Plain responses have neither of these two keys.
  std::optional<std::int64_t> seq;
};

struct EventPacket {
  std::string_view ver = kProtocolVersion;
  std::string_view sender;
  std::string_view id;
  std::string_view event;
  Payload data;
  Payload groups;  // An array of names; absent, null and empty mean no filter.
  bool broadcast = false;
  Payload meta;
  Payload headers;
  int level = 1;
  std::optional<bool> tracing;
  std::string_view parent_id;
  std::string_view request_id;
  std::string_view caller;
};

}  // namespace weft
