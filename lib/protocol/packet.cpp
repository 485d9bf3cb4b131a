#include "lib/protocol/packet.h"

#include <array>

namespace weft {

namespace {
constexpr std::array<std::string_view, kPacketTypeCount> kNames = {
    "EVENT",     "REQ",  "RES",  "DISCOVER",     "INFO",       "DISCONNECT",
    "HEARTBEAT", "PING", "PONG", "GOSSIP_HELLO", "GOSSIP_REQ", "GOSSIP_RES"};
}

std::string_view to_string(PacketType type) {
  return kNames[static_cast<std::size_t>(type)];
}

std::optional<PacketType> packet_type_from(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<PacketType>(i);
  }
  return std::nullopt;
}

}  // namespace weft
