#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/base/function_ref.h"
#include "lib/protocol/packet.h"

namespace weft {

// What clients and the simulated bus say to each other: 12 bytes, then three runs of bytes.
//
//   u32 size of all that follows, u8 verb, u8 packet type, u16 name bytes, u16 tag bytes, u16 zero
//   name, tag, payload
//
// In the host's byte order: it never leaves the process.
struct SimBusMessage {
  enum class Verb : std::uint8_t {
    // From a client.
    kJoin,       // name: node ID, tag: namespace.
    kLeave,      // Takes nothing more; the connection stands.
    kSend,       // name: node ID, tag: correlation.
    kBroadcast,  //
    kProbe,      // name: node ID.
    kSubscribe,  // payload: lines "a <action>" and "e <group> <pattern>", replacing those before.
    kRequest,    // name: action.
    kEvent,      // name: group, tag: event.
    // From the bus.
    kFrame,        // tag: not empty if it was balanced.
    kUndelivered,  // name: node ID, tag: correlation.
    // Comes back as it went.
    kEcho,
  };

  Verb verb;
  PacketType type = PacketType::kPing;
  std::string_view name = {};
  std::string_view tag = {};
  BytesView payload = {};
};

inline constexpr std::size_t kSimBusMessageBytesMax = 16UL << 20;

void append(Buffer& out, const SimBusMessage& message);

// Cuts a stream of bytes into messages.
class SimBusReader {
 public:
  // `take` gives false to stop; then this reader, which may be gone, is not used any more. Payloads have
  // kReadPadding readable bytes behind them.
  void read(BytesView bytes, FunctionRef<bool(const SimBusMessage&)> take);

 private:
  Buffer rest_;  // The beginning of a message whose end has not come.
};

}  // namespace weft
