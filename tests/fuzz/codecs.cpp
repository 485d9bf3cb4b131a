// JSON and MessagePack: to trees, to structs, to the packets that are structs, and token by token.

#include "tests/fuzz/fuzz.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/protocol/payload.h"
#include "lib/value/value_io.h"

namespace fuzzed {

struct Leaf {
  std::int8_t small = 0;
  std::uint64_t large = 0;
  std::optional<float> ratio;
};
WEFT_FIELDS(Leaf, small, large, ratio)

struct Tree {
  bool flag = false;
  std::int64_t number = 0;
  double real = 0;
  std::string text;
  weft::Binary bytes;
  weft::Timestamp time;
  weft::Value any;
  std::vector<Leaf> leaves;
  std::map<std::string, std::vector<bool>> flags;
  std::vector<Tree> children;
};
WEFT_FIELDS(Tree, flag, number, real, text, bytes, time, any, leaves, flags, children)

}  // namespace fuzzed

namespace weft::fuzz {

namespace {

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

void check_tree(const Serializer& serializer, BytesView input) {
  const Padded message(input);
  Value tree;
  if (!serializer.decode(message.view(), tree).ok()) return;
  Buffer written;
  WEFT_ASSERT(serializer.encode(tree, written).ok());
  Value again;
  WEFT_ASSERT(serializer.decode(written.view(), again).ok());
  WEFT_ASSERT(!is_comparable(tree) || again == tree);
  (void)to_pretty_json(tree);
}

template <typename Packet>
void check_packet(const Serializer& serializer, BytesView input) {
  const Padded message(input);
  Packet packet;
  if (!serializer.decode(message.view(), packet).ok()) return;
  Buffer written;
  if (!serializer.encode(packet, written).ok()) return;
  Packet again;
  // A slice is spliced unread: what is malformed inside it is the receiver's to find.
  if (serializer.decode(written.view(), again).ok()) WEFT_ASSERT(again.id == packet.id);
  (void)packet.meta.to_value().ok();
  (void)packet.headers.to_value().ok();
}

void check_struct(const Serializer& serializer, BytesView input) {
  const Padded message(input);
  const Payload payload = Payload::slice(serializer, message.view());
  const auto tree = payload.as<fuzzed::Tree>();
  if (!tree.ok()) {
    (void)to_json(tree.error().data());
    return;
  }
  // Read well from bytes, read well from the tree of the same bytes.
  const auto value = payload.to_value();
  if (value.ok()) WEFT_ASSERT(Payload(*value).as<fuzzed::Tree>().ok());
  Buffer written;
  if (!serializer.encode(Payload::borrow(*tree).to_value().value(), written).ok()) return;
  WEFT_ASSERT(Payload::slice(serializer, written.view()).as<fuzzed::Tree>().ok() ||
              !is_comparable(Payload::borrow(*tree).to_value().value()));
}

// Walks with every mixture of steps and skips; the first byte is the mixture.
void check_walk(const Serializer& serializer, BytesView input) {
  if (input.empty()) return;
  const auto pattern = static_cast<unsigned char>(input.front());
  const Padded message(input.substr(1));
  serializer.read(message.view(), [&](ValueReader& reader) {
    for (unsigned i = 0; i < 10'000 && reader.next().kind != Token::Kind::kError; ++i) {
      if ((pattern >> (i % 8) & 1) != 0) reader.skip();
    }
  });
}

template <auto& serializer, auto check>
void run(BytesView input) {
  check(serializer(), input);
}

constexpr Target kTargets[] = {
    {"json.tree", run<json, check_tree>},
    {"json.struct", run<json, check_struct>},
    {"json.walk", run<json, check_walk>},
    {"json.request", run<json, check_packet<RequestPacket>>},
    {"json.response", run<json, check_packet<ResponsePacket>>},
    {"json.event", run<json, check_packet<EventPacket>>},
    {"msgpack.tree", run<msgpack, check_tree>},
    {"msgpack.struct", run<msgpack, check_struct>},
    {"msgpack.walk", run<msgpack, check_walk>},
    {"msgpack.request", run<msgpack, check_packet<RequestPacket>>},
    {"msgpack.response", run<msgpack, check_packet<ResponsePacket>>},
    {"msgpack.event", run<msgpack, check_packet<EventPacket>>},
};

}  // namespace

std::span<const Target> codec_targets() {
  return kTargets;
}

}  // namespace weft::fuzz
