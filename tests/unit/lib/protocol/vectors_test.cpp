// Every message of the recordings, read and written.

#include "tests/unit/lib/protocol/codec_support.h"
#include "tests/unit/lib/protocol/packet_value.h"

namespace weft::test {

namespace {

constexpr std::size_t kFrameHeaderBytes = 6;

struct Recorded {
  std::string file;
  std::string packet;  // "REQ", "RES" …
  std::string serializer;
  Buffer bytes;  // Without the header of a TCP frame.
  Value meaning;
};

std::vector<Recorded> recorded(std::string_view serializer) {
  std::vector<Recorded> all;
  const Value index = load_json_vector("index.json");
  for (const Value& row : index.items()) {
    const std::string file(row["file"].str());
    if (row["serializer"].str_or({}) != serializer || file.starts_with("nats-v4")) continue;
    std::string packet(row["packet"].str());
    if (packet.back() == 'B') packet.pop_back();  // A balanced REQ or EVENT differs in its subject only.
    Buffer bytes = load_vector(file);
    REQUIRE(static_cast<std::int64_t>(bytes.size()) == row["bytes"].i64());
    if (file.starts_with("tcp-")) bytes.consume(kFrameHeaderBytes);
    all.push_back({file, packet, std::string(serializer), std::move(bytes), without_markers(row["decoded"])});
  }
  return all;
}

template <typename Packet>
void check_packet(const Recorded& message) {
  const auto own = serializer_of(message.serializer);
  Packet packet;
  const auto decoded = own->decode(message.bytes.view(), packet);
  REQUIRE_MESSAGE(decoded.ok(), decoded.error().to_string());
  CHECK_MESSAGE(to_map(packet) == message.meaning, to_json(to_map(packet)), "\n", to_json(message.meaning));

  // Slices spliced in, trees written out, and a serializer of the same kind that has never seen the slices.
  Packet trees = packet;
  trees.meta = packet.meta.value();
  trees.headers = packet.headers.value();
  if constexpr (requires { trees.params; }) {
    if (!packet.params.is_absent()) trees.params = packet.params.value();
  }
  const auto reader = serializer_of(message.serializer);
  const auto writer = serializer_of(message.serializer);
  for (const Packet* source : {&packet, &trees}) {
    for (const Serializer* by : {own.get(), writer.get()}) {
      Buffer bytes;
      REQUIRE(by->encode(*source, bytes).ok());
      Packet again;
      REQUIRE(reader->decode(bytes.view(), again).ok());
      Value meaning = message.meaning;
      if (!meaning.contains("meta")) meaning.set("meta", Value::object());
      CHECK_MESSAGE(to_map(again) == meaning, to_json(to_map(again)), "\n", to_json(meaning));
    }
  }
}

void check_recordings(std::string_view name, std::size_t count) {
  const auto messages = recorded(name);
  CHECK(messages.size() == count);
  for (const Recorded& message : messages) {
    CAPTURE(message.file);
    if (message.packet == "REQ") {
      check_packet<RequestPacket>(message);
    } else if (message.packet == "RES") {
      check_packet<ResponsePacket>(message);
    } else if (message.packet == "EVENT") {
      check_packet<EventPacket>(message);
    }
    const auto own = serializer_of(name);
    Value tree;
    const auto decoded = own->decode(message.bytes.view(), tree);
    REQUIRE_MESSAGE(decoded.ok(), decoded.error().to_string());
    CHECK_MESSAGE(tree == message.meaning, to_json(tree), "\n", to_json(message.meaning));
    Buffer bytes;
    REQUIRE(own->encode(tree, bytes).ok());
    Value again;
    REQUIRE(own->decode(bytes.view(), again).ok());
    CHECK(again == message.meaning);
  }
}

}  // namespace

TEST_SUITE("protocol vectors") {
  TEST_CASE("every recorded JSON message is read, and written again to the same meaning") {
    check_recordings("JSON", 154);
  }

  TEST_CASE("every recorded MessagePack message is read, and written again to the same meaning") {
    check_recordings("MsgPack", 132);
  }
}

}  // namespace weft::test
