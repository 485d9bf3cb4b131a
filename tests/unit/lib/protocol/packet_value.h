#pragma once

#include "lib/protocol/packet.h"
#include "lib/protocol/serializer.h"
#include "lib/value/value.h"

namespace weft::test {

// What a decoded packet says, as the map it came from: a key for each field that is there, null where null
// means something.

inline void set_payload(Value& map, std::string_view key, const Payload& payload) {
  if (!payload.is_absent()) map.set(key, payload.value());
}
inline Value text_or_null(std::string_view text) {
  return text.empty() ? Value() : Value(text);
}
template <typename Packet>
void set_context(Value& map, const Packet& packet) {
  map.set("level", packet.level);
  map.set("tracing", packet.tracing ? Value(*packet.tracing) : Value());
  map.set("parentID", text_or_null(packet.parent_id));
  map.set("requestID", text_or_null(packet.request_id));
  map.set("caller", text_or_null(packet.caller));
}
template <typename Packet>
Value begin_map(const Packet& packet) {
  Value map{{"ver", packet.ver}, {"sender", packet.sender}, {"id", packet.id}};
  set_payload(map, "meta", packet.meta);
  set_payload(map, "headers", packet.headers);
  return map;
}

inline Value to_map(const RequestPacket& packet) {
  Value map = begin_map(packet);
  map.set("action", packet.action);
  set_payload(map, "params", packet.params);
  set_context(map, packet);
  if (packet.timeout_ms) map.set("timeout", *packet.timeout_ms);
  if (packet.has_stream) map.set("stream", packet.stream);
  if (packet.seq) map.set("seq", *packet.seq);
  return map;
}

inline Value to_map(const ResponsePacket& packet) {
  Value map = begin_map(packet);
  map.set("success", packet.success);
  set_payload(map, "data", packet.data);
  set_payload(map, "error", packet.error);
  if (packet.headers_null) map.set("headers", nullptr);
  if (packet.stream) map.set("stream", *packet.stream);
  if (packet.seq) map.set("seq", *packet.seq);
  return map;
}

inline Value to_map(const EventPacket& packet) {
  Value map = begin_map(packet);
  map.set("event", packet.event);
  set_payload(map, "data", packet.data);
  set_payload(map, "groups", packet.groups);
  map.set("broadcast", packet.broadcast);
  set_context(map, packet);
  map.set("needAck", nullptr);
  return map;
}

}  // namespace weft::test
