// Payloads as slices: lent, copied, spliced.

#include "lib/protocol/payload.h"

#include <atomic>
#include <thread>

#include "lib/protocol/packet.h"
#include "tests/unit/lib/protocol/codec_support.h"

namespace payload_test {

struct Item {
  std::string name;
  std::vector<std::int64_t> numbers;
  std::optional<double> weight;
};
WEFT_FIELDS(Item, name, numbers, weight)

}  // namespace payload_test

namespace weft::test {

namespace {
using payload_test::Item;

const Value kItem{
    {"name", "bolt"}, {"numbers", arr(1, 2, 3)}, {"extra", {{"deep", arr(nullptr, "x")}}}, {"weight", 0.5}};
}  // namespace

TEST_SUITE("payload") {
  TEST_CASE("a slice is read as a struct, as a tree, and as a struct again") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer bytes = encoded(*serializer, kItem);
      const Payload payload = Payload::slice(*serializer, bytes.view());
      for (int i = 0; i < 2; ++i) {
        const auto item = payload.as<Item>();
        REQUIRE_MESSAGE(item.ok(), item.error().to_string());
        CHECK(item->name == "bolt");
        CHECK(item->numbers == std::vector<std::int64_t>{1, 2, 3});
        CHECK(item->weight == 0.5);
        CHECK(payload.value() == kItem);
      }
    }
  }

  TEST_CASE("what does not fit is a validation error that names the place") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer bytes = encoded(*serializer, Value{{"name", arr(arr(1), 2)}, {"numbers", arr(1, "x", 2)}});
      const auto item = Payload::slice(*serializer, bytes.view()).as<Item>();
      REQUIRE_FALSE(item.ok());
      CHECK(item.error().code() == 422);
      REQUIRE(item.error().data().size() == 2);
      CHECK(item.error().data()[0]["field"].str() == "name");
      CHECK(item.error().data()[1]["field"].str() == "numbers[1]");
    }
  }

  TEST_CASE("the report of a value that does not fit can itself be sent") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      std::string text = "x";
      for (int i = 0; i < 60; ++i) text += "\xe2\x82\xac";  // Its 64th byte is inside a character.
      const Buffer bytes = encoded(*serializer, Value{{"name", "n"}, {"numbers", text}});
      const auto item = Payload::slice(*serializer, bytes.view()).as<Item>();
      REQUIRE_FALSE(item.ok());
      Buffer out;
      CHECK(serializer->encode(item.error().data(), out).ok());
    }
  }

  TEST_CASE("retaining makes a slice independent of its message") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      Buffer bytes = encoded(*serializer, kItem);
      Payload payload = Payload::slice(*serializer, bytes.view());
      CHECK_FALSE(payload.is_retained());
      payload.retain();
      CHECK(payload.is_retained());
      std::memset(bytes.data(), 'x', bytes.size());
      const Payload copy = payload;
      payload = {};
      CHECK(copy.value() == kItem);
    }
  }

  TEST_CASE("a slice is spliced as it is, also by another serializer of its kind") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const auto other = serializer_of(name);
      const Buffer bytes = encoded(*serializer, kItem);
      const Payload payload = Payload::slice(*serializer, bytes.view());
      CHECK(payload.raw(*serializer) == bytes.view());
      CHECK(payload.raw(*other) == bytes.view());
      CHECK(payload.raw(*serializer_of(name == "JSON" ? "MsgPack" : "JSON")).empty());
    }
  }

  TEST_CASE("a slice of another form is translated") {
    const auto json = serializer_of("JSON");
    const auto msgpack = serializer_of("MsgPack");
    for (const auto& [from, to] :
         {std::pair(json.get(), msgpack.get()), std::pair(msgpack.get(), json.get())}) {
      const Buffer bytes = encoded(*from, kItem);
      RequestPacket packet;
      packet.id = "1";
      packet.params = Payload::slice(*from, bytes.view());
      Buffer out;
      REQUIRE(to->encode(packet, out).ok());
      CHECK(decoded(*to, out.view())["params"] == kItem);
    }
  }

  TEST_CASE("a malformed slice of another form is an error of the encoding, not an exception") {
    const auto json = serializer_of("JSON");
    const auto msgpack = serializer_of("MsgPack");
    const Buffer bad_json = to_buffer("{\"a\" 1}");
    const Buffer bad_msgpack = from_hex("92c1");
    for (const auto& [from, bytes, to] : {std::tuple(json.get(), bad_json.view(), msgpack.get()),
                                          std::tuple(msgpack.get(), bad_msgpack.view(), json.get())}) {
      RequestPacket packet;
      packet.id = "1";
      packet.params = Payload::slice(*from, bytes);
      Buffer out;
      out.append("kept");
      const auto result = to->encode(packet, out);
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().type() == "MALFORMED_VALUE");
      CHECK(out.view() == "kept");
      CHECK_THROWS_AS((void)packet.params.value(), Exception);
      CHECK_FALSE(packet.params.to_value().ok());
      CHECK(packet.params.as<Item>().error().type() == "MALFORMED_VALUE");
    }
  }

  TEST_CASE("readers are lent within readers, deeper than the pool is large") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer outer = encoded(*serializer, arr(1, 2));
      int seen = 0;
      const auto descend = [&](const auto& self, int level) -> void {
        serializer->read(outer.view(), [&](ValueReader& reader) {
          CHECK(reader.next().kind == Token::Kind::kBeginArray);
          CHECK(reader.next().integer == 1);
          if (level > 0) self(self, level - 1);
          CHECK(reader.next().integer == 2);
          CHECK(reader.next().kind == Token::Kind::kEndArray);
          CHECK(reader.next().kind == Token::Kind::kError);
          ++seen;
        });
      };
      descend(descend, 9);
      CHECK(seen == 10);
    }
  }

  TEST_CASE("threads read slices while another decodes") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer bytes = encoded(*serializer, kItem);
      const Buffer message = encoded(*serializer, Value{{"id", "1"}, {"action", "a\"b"}, {"params", kItem}});
      std::atomic<int> wrong = 0;
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          for (int k = 0; k < 500; ++k) {
            const auto item = Payload::slice(*serializer, bytes.view()).as<Item>();
            if (!item.ok() || item->name != "bolt") ++wrong;
          }
        });
      }
      RequestPacket packet;
      for (int k = 0; k < 500; ++k) {
        if (!serializer->decode(message.view(), packet).ok() || packet.action != "a\"b") ++wrong;
      }
      for (std::thread& thread : threads) thread.join();
      CHECK(wrong == 0);
    }
  }

  TEST_CASE("a reader passes over values, members and the rest of an array") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer bytes =
          encoded(*serializer,
                  Value{{"a", arr(1, arr(2), 3)}, {"b", {{"c", 1}}}, {"d", "x"}, {"e", arr()}, {"f", 5}});
      serializer->read(bytes.view(), [](ValueReader& reader) {
        CHECK(reader.next().kind == Token::Kind::kBeginObject);
        CHECK(reader.next().text == "a");
        CHECK(reader.next().kind == Token::Kind::kBeginArray);
        reader.skip();
        reader.skip();
        CHECK(reader.next().integer == 3);
        reader.skip();  // Nothing left: nothing happens.
        CHECK(reader.next().kind == Token::Kind::kEndArray);
        CHECK(reader.next().text == "b");
        reader.skip();
        reader.skip();  // The whole member "d".
        CHECK(reader.next().text == "e");
        CHECK(reader.next().kind == Token::Kind::kBeginArray);
        reader.skip();
        CHECK(reader.next().kind == Token::Kind::kEndArray);
        CHECK(reader.next().text == "f");
        CHECK(reader.next().integer == 5);
        reader.skip();
        CHECK(reader.next().kind == Token::Kind::kEndObject);
      });
      serializer->read(bytes.view(), [](ValueReader& reader) {
        reader.skip();  // All of it.
        CHECK(reader.next().kind == Token::Kind::kError);
      });
    }
  }

  TEST_CASE("an empty object is known without decoding") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer empty = encoded(*serializer, Value::object());
      const Buffer full = encoded(*serializer, kItem);
      CHECK(Payload::slice(*serializer, empty.view()).is_empty_object());
      CHECK_FALSE(Payload::slice(*serializer, full.view()).is_empty_object());
    }
    CHECK(Payload().is_empty_object());
  }
}

}  // namespace weft::test
