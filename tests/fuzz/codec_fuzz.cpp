// Any bytes, read as any packet by either serializer: no crash, and what was read comes back when it is
// written.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "lib/base/assert.h"
#include "lib/protocol/serializer.h"
#include "lib/value/value_io.h"

namespace {

using namespace weft;

// Whether a tree is written and read back to the same: all but NaN, which equals nothing, and the infinities,
// which JSON has no word for.
bool is_comparable(const Value& value) {
  if (value.kind() == Value::Kind::kDouble) return value.f64() - value.f64() == 0;
  for (const Value& item : value.items()) {
    if (!is_comparable(item)) return false;
  }
  for (const Member& member : value.members()) {
    if (!is_comparable(member.value)) return false;
  }
  return true;
}

void check_tree(const Serializer& serializer, BytesView message) {
  Value tree;
  if (!serializer.decode(message, tree).ok()) return;
  Buffer written;
  WEFT_ASSERT(serializer.encode(tree, written).ok());
  Value again;
  WEFT_ASSERT(serializer.decode(written.view(), again).ok());
  WEFT_ASSERT(!is_comparable(tree) || again == tree);
  (void)to_pretty_json(tree);
}

template <typename Packet>
void check_packet(const Serializer& serializer, BytesView message) {
  Packet packet;
  if (!serializer.decode(message, packet).ok()) return;
  Buffer written;
  if (!serializer.encode(packet, written).ok()) return;
  Packet again;
  // A slice is spliced unread: what is malformed inside it is the receiver's to find.
  if (serializer.decode(written.view(), again).ok()) WEFT_ASSERT(again.id == packet.id);
  (void)packet.meta.to_value().ok();
  (void)packet.headers.to_value().ok();
}

// Walks with every mixture of steps and skips.
void check_reader(const Serializer& serializer, BytesView message, unsigned pattern) {
  serializer.read(message, [&](ValueReader& reader) {
    for (unsigned i = 0; i < 10'000 && reader.next().kind != Token::Kind::kError; ++i) {
      if ((pattern >> (i % 8) & 1) != 0) reader.skip();
    }
  });
}

}  // namespace

// The first byte chooses the serializer and the walk.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto json = std::move(make_serializer("JSON")).value();
  static const auto msgpack = std::move(make_serializer("MsgPack")).value();
  if (size == 0) return 0;
  const Serializer& serializer = (data[0] & 1) != 0 ? *json : *msgpack;
  // A block of the very size, so that the sanitizer sees a step beyond the padding.
  const std::unique_ptr<char[]> bytes(new char[size - 1 + kReadPadding]);
  std::memcpy(bytes.get(), data + 1, size - 1);
  std::memset(bytes.get() + size - 1, data[0], kReadPadding);
  const BytesView message(bytes.get(), size - 1);
  check_tree(serializer, message);
  check_packet<RequestPacket>(serializer, message);
  check_packet<ResponsePacket>(serializer, message);
  check_packet<EventPacket>(serializer, message);
  check_reader(serializer, message, data[0]);
  return 0;
}
