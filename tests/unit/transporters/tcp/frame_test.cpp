#include "transporters/tcp/frame.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/random/random.h"
#include "tests/support/vectors.h"

namespace weft {
namespace {

constexpr std::size_t kLimit = 1 << 20;

std::string frame(PacketType type, std::string_view payload) {
  const FrameHeader header = make_frame_header(type, payload.size());
  return std::string(header.data(), header.size()) + std::string(payload);
}

// Any type and length, check byte right.
std::string raw_header(std::int32_t length, int type) {
  const auto bits = static_cast<std::uint32_t>(length);
  std::string header(6, '\0');
  for (std::size_t i = 0; i < 4; ++i) header[1 + i] = static_cast<char>(bits >> (24 - 8 * i) & 0xff);
  header[5] = static_cast<char>(type);
  for (std::size_t i = 1; i < 6; ++i) header[0] = static_cast<char>(header[0] ^ header[i]);
  return header;
}

// Feeds pieces in buffers of just their size and padding, so that sanitizers see a read too far.
struct Feeder {
  explicit Feeder(std::size_t limit = kLimit) : decoder(limit) {}

  bool feed(std::string_view bytes) {
    Buffer piece;
    piece.reserve(bytes.size());
    piece.append(bytes);
    const Result<> result = decoder.feed(piece.view(), [this](PacketType type, BytesView payload) {
      const volatile char last_of_padding = payload.data()[payload.size() + kReadPadding - 1];
      static_cast<void>(last_of_padding);
      packets.push_back(std::string(to_string(type)) + ":" + std::string(payload));
      return true;
    });
    if (!result.ok()) error = result.error().message();
    return result.ok();
  }

  FrameDecoder decoder;
  std::vector<std::string> packets;
  std::string error;
};

const std::vector<std::string> kThree = {"REQ:first payload", "EVENT:", "GOSSIP_HELLO:third"};

std::string three_frames() {
  return frame(PacketType::kRequest, "first payload") + frame(PacketType::kEvent, "") +
         frame(PacketType::kGossipHello, "third");
}

TEST_SUITE("tcp frame") {
  TEST_CASE("three glued frames come out the same wherever they are cut in two") {
    const std::string bytes = three_frames();
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      Feeder feeder;
      REQUIRE(feeder.feed(std::string_view(bytes).substr(0, cut)));
      REQUIRE(feeder.feed(std::string_view(bytes).substr(cut)));
      CHECK(feeder.packets == kThree);
      CHECK(feeder.decoder.held_bytes() == 0);
    }
  }

  TEST_CASE("three frames come out the same for any two cuts, and byte by byte") {
    const std::string bytes = three_frames();
    const std::string_view view = bytes;
    for (std::size_t a = 0; a <= bytes.size(); ++a) {
      for (std::size_t b = a; b <= bytes.size(); ++b) {
        Feeder feeder;
        REQUIRE(feeder.feed(view.substr(0, a)));
        REQUIRE(feeder.feed(view.substr(a, b - a)));
        REQUIRE(feeder.feed(view.substr(b)));
        REQUIRE(feeder.packets == kThree);
      }
    }
    Feeder feeder;
    for (const char byte : bytes) REQUIRE(feeder.feed({&byte, 1}));
    CHECK(feeder.packets == kThree);
  }

  TEST_CASE("the limit is on the declared length of one frame, not on what is buffered") {
    std::string bytes;
    for (int i = 0; i < 300; ++i)
      bytes += frame(PacketType::kEvent, std::string(4090, static_cast<char>('a' + i % 26)));
    Feeder feeder(8192);
    CHECK(feeder.feed(bytes));
    CHECK(feeder.packets.size() == 300);
    CHECK(feeder.packets[27] == "EVENT:" + std::string(4090, 'b'));
  }

  TEST_CASE("a frame of exactly the limit passes, one byte more does not") {
    Feeder feeder(1000);
    CHECK(feeder.feed(frame(PacketType::kEvent, std::string(994, 'x'))));
    CHECK(feeder.packets.size() == 1);
    CHECK_FALSE(feeder.feed(frame(PacketType::kEvent, std::string(995, 'x'))));
  }

  TEST_CASE("memory follows the bytes that came, not the length that was promised") {
    Feeder feeder(0x7fffffff);
    CHECK(feeder.feed(raw_header(0x7fffffff, 1) + "abc"));
    CHECK(feeder.decoder.held_bytes() == 9);
  }

  TEST_CASE("headers that are no headers are errors as soon as they are whole") {
    struct Row {
      const char* what;
      std::string bytes;
    };
    std::string bad_check = frame(PacketType::kGossipHello, "{}");
    bad_check[0] ^= 1;
    const std::vector<Row> rows = {
        {"type 0", raw_header(8, 0) + "{}"},
        {"type 9", raw_header(8, 9) + "{}"},
        {"type 255", raw_header(8, 255) + "{}"},
        {"wrong check byte", bad_check},
        {"length 0", raw_header(0, 1)},
        {"length 5", raw_header(5, 1)},
        {"length -10", raw_header(-10, 1)},
        {"the most negative length", raw_header(INT32_MIN, 1)},
        {"above the limit", raw_header(kLimit + 1, 1)},
        {"the largest length", raw_header(INT32_MAX, 1)},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      // Behind good frames, glued or torn: those before are delivered all the same.
      for (std::size_t cut = 0; cut < 12; ++cut) {
        const std::string bytes = frame(PacketType::kPing, "ok") + row.bytes;
        Feeder feeder;
        const bool first = feeder.feed(std::string_view(bytes).substr(0, cut));
        CHECK(first);
        CHECK_FALSE(feeder.feed(std::string_view(bytes).substr(cut)));
        CHECK(feeder.packets == std::vector<std::string>{"PING:ok"});
        CHECK_FALSE(feeder.error.empty());
      }
    }
  }

  TEST_CASE("a sink that says stop is not called again") {
    FrameDecoder decoder(kLimit);
    Buffer bytes = test::to_buffer(three_frames());
    int calls = 0;
    CHECK(decoder.feed(bytes.view(), [&](PacketType, BytesView) { return ++calls < 2; }).ok());
    CHECK(calls == 2);
  }

  TEST_CASE("a sink may destroy the decoder, also in the middle of a torn frame") {
    for (const std::size_t cut : {std::size_t{0}, std::size_t{3}, std::size_t{9}}) {
      auto decoder = std::make_unique<FrameDecoder>(kLimit);
      Buffer head = test::to_buffer(three_frames().substr(0, cut));
      Buffer tail = test::to_buffer(three_frames().substr(cut));
      const auto sink = [&](PacketType, BytesView) {
        decoder.reset();
        return false;
      };
      CHECK(decoder->feed(head.view(), sink).ok());
      CHECK(decoder->feed(tail.view(), sink).ok());
      CHECK(decoder == nullptr);
    }
  }

  TEST_CASE("recorded frames decode to their type and payload, and their header is what we would write") {
    const Value index = test::load_json_vector("index.json");
    int checked = 0;
    for (const Value& entry : index.items()) {
      const std::string file(entry["file"].str());
      if (file.rfind("tcp-", 0) != 0) continue;
      CAPTURE(file);
      const Buffer bytes = test::load_vector(file);
      Feeder feeder;
      REQUIRE(feeder.feed(bytes.view()));
      REQUIRE(feeder.packets.size() == 1);
      const std::string payload(bytes.view().substr(kFrameHeaderBytes));
      CHECK(feeder.packets[0] == std::string(entry["packet"].str()) + ":" + payload);
      const auto type = packet_type_from(entry["packet"].str());
      REQUIRE(type.has_value());
      CHECK(frame(*type, payload) == bytes.view());
      CHECK(entry["header"]["type"].i64() == *frame_number(*type));
      ++checked;
    }
    CHECK(checked > 50);
  }

  TEST_CASE("packets of the bus have no place in a frame") {
    for (const PacketType type :
         {PacketType::kDiscover, PacketType::kInfo, PacketType::kHeartbeat, PacketType::kDisconnect}) {
      CHECK_FALSE(frame_number(type).has_value());
    }
  }

  TEST_CASE("random bytes never crash and never grow what is held beyond the limit") {
    SeededRandom random(11);
    for (int run = 0; run < 300; ++run) {
      Feeder feeder(4096);
      for (int piece = 0; piece < 20; ++piece) {
        std::string bytes;
        if (random.below(2) == 0) bytes = frame(PacketType::kEvent, std::string(random.below(200), 'x'));
        const std::size_t noise = random.below(40);
        for (std::size_t i = 0; i < noise; ++i) bytes += static_cast<char>(random.next());
        if (!feeder.feed(bytes)) break;
        CHECK(feeder.decoder.held_bytes() <= 4096);
      }
    }
  }
}

}  // namespace
}  // namespace weft
