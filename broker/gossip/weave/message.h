#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/buffer.h"

namespace weft {

// What weft nodes tell one another besides Moleculer's packets. DESIGN.md lays out the bytes.

// What is known of a node. The larger number wins; of equal ones, offline.
struct WeaveHead {
  std::string_view name;
  std::uint64_t number = 0;      // The node's `seq`.
  std::uint64_t content = 0;     // The number at which its INFO last changed.
  std::uint32_t instance = 0;    // Digest of its instance id.
  std::uint32_t info_bytes = 0;  // About how long its INFO is.
  bool online = false;
  bool left = false;  // Offline by its own word.
};

inline constexpr std::size_t kWeaveBuckets = 64;
using WeaveSums = std::array<std::uint32_t, kWeaveBuckets>;

// The parts of a message.

struct WeavePing {
  std::uint32_t nonce = 0;
  std::uint64_t sum = 0;  // Of all the sender holds online.
  std::uint64_t number = 0;
  std::uint32_t instance = 0;
};
struct WeavePong {
  std::uint32_t nonce = 0;
  std::uint64_t sum = 0;
};
// To a node about itself: what the sender holds of it, for how long it has heard it speak all the same, and
// how many nodes the sender holds online.
struct WeaveNote {
  WeaveHead head;
  std::uint32_t heard_ms = 0;
  std::uint32_t online_count = 0;
};
struct WeaveDoubt {
  std::string_view name;
  std::uint64_t number = 0;
};
struct WeaveBuckets {
  std::uint64_t which = 0;
  std::vector<WeaveHead> heads;
};

// One message: any of its parts may be there. Names point into the bytes it was read from.
struct WeaveMessage {
  using Ping = WeavePing;
  using Pong = WeavePong;
  using Note = WeaveNote;
  using Doubt = WeaveDoubt;
  using Buckets = WeaveBuckets;

  std::optional<Ping> ping;
  std::optional<Pong> pong;
  std::optional<Note> note;
  std::vector<WeaveHead> news;
  std::vector<WeaveHead> infos;         // The INFOs themselves travel beside, in this order.
  std::vector<std::string_view> wants;  // Nodes whose INFO is asked for.
  std::optional<Doubt> accusation;
  std::optional<Doubt> voucher;
  std::optional<WeaveSums> sums;           // Asks which buckets differ …
  std::optional<std::uint64_t> differing;  // … these.
  std::optional<std::uint64_t> get;        // Asks for the heads of buckets …
  std::optional<Buckets> buckets;          // … here.
};

void write(const WeaveMessage& message, Buffer& out);
// False if `bytes` are no message; then `message` is not to be used.
[[nodiscard]] bool read(BytesView bytes, WeaveMessage& message);

// Bytes as text of JSON, without padding.
void append_base64(BytesView bytes, Buffer& out);
[[nodiscard]] bool read_base64(BytesView text, Buffer& out);

}  // namespace weft
