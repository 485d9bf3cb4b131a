// What goes through both serializers comes out as it went in.

#include <cmath>

#include "lib/protocol/packet.h"
#include "lib/random/random.h"
#include "tests/unit/lib/protocol/codec_support.h"

namespace weft::test {

namespace {

class ValueMaker {
 public:
  explicit ValueMaker(std::uint64_t seed) : random_(seed) {}

  // `is_exact`: only kinds that come back from JSON as they were.
  Value make(int depth, bool is_exact) {
    switch (random_.below(depth > 0 ? 10 : 7)) {
      case 0:
        return nullptr;
      case 1:
        return random_.below(2) == 1;
      case 2:
        return static_cast<std::int64_t>(random_.next()) >> random_.below(64);
      case 3:
        return random_.next() >> random_.below(64);
      case 4: {
        const double number = std::ldexp(random_.uniform() - 0.5, static_cast<int>(random_.below(600)) - 300);
        return number;
      }
      case 5:
        return text();
      case 6:
        if (is_exact) return text();
        return random_.below(2) == 0
                   ? Value(Binary{text()})
                   : Value(Timestamp{static_cast<std::int64_t>(random_.next() >> 20) - (1LL << 42)});
      case 7:
      case 8: {
        Value object = Value::object();
        for (std::size_t i = random_.below(20); i > 0; --i) object.set(text(), make(depth - 1, is_exact));
        return object;
      }
      default: {
        Value array = Value::array();
        for (std::size_t i = random_.below(20); i > 0; --i) array.push_back(make(depth - 1, is_exact));
        return array;
      }
    }
  }

 private:
  std::string text() {
    constexpr std::string_view kParts[] = {"a", "plain text", "\"",           "\\",   "\n", "\x01",     "é",
                                           "€", "😀",          "\xed\xa0\x80", "\x7f", "/",  "__proto__"};
    std::string text;
    for (std::size_t i = random_.below(8); i > 0; --i) text += kParts[random_.below(std::size(kParts))];
    return text;
  }

  SeededRandom random_;
};

}  // namespace

TEST_SUITE("round trip") {
  TEST_CASE("random values come back as they were") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      CAPTURE(seed);
      for (const auto name : kSerializers) {
        const Value value = ValueMaker(seed).make(4, name == "JSON");
        const auto serializer = serializer_of(name);
        const Buffer bytes = encoded(*serializer, value);
        CHECK(decoded(*serializer, bytes.view()) == value);
      }
    }
  }

  TEST_CASE("a lone surrogate and a key named __proto__ pass through, as trees and as slices") {
    const Value params{{"__proto__", {{"x", "\xed\xa0\x80"}}}, {"\xed\xbf\xbf", "a\xed\xa0\x80z"}};
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      RequestPacket packet;
      packet.id = "\xed\xa0\x80";
      packet.action = "a";
      packet.params = params;
      Buffer first;
      REQUIRE(serializer->encode(packet, first).ok());
      RequestPacket received;
      REQUIRE(serializer->decode(first.view(), received).ok());
      CHECK(received.id == packet.id);
      CHECK(received.params.value() == params);
      Buffer second;
      REQUIRE(serializer->encode(received, second).ok());
      CHECK(second.view() == first.view());
    }
    const auto json = serializer_of("JSON");
    const Buffer text = to_buffer(R"({"id":"1","action":"a","params":{"__proto__":"\ud800"}})");
    RequestPacket packet;
    REQUIRE(json->decode(text.view(), packet).ok());
    Buffer out;
    REQUIRE(json->encode(packet, out).ok());
    CHECK(out.view().find(R"("params":{"__proto__":"\ud800"})") != std::string_view::npos);
  }

  TEST_CASE("ten mebibytes of text come back, and the memory they took is not kept") {
    std::string text(10 << 20, 'x');
    for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = i % 3000 == 0 ? '"' : '\n';
    text += "é";
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer bytes = encoded(*serializer, Value{{"id", "1"}, {"action", "a"}, {"params", text}});
      RequestPacket packet;
      REQUIRE(serializer->decode(bytes.view(), packet).ok());
      CHECK(packet.params.value().str() == text);
      const auto typed = packet.params.as<std::string>();
      REQUIRE(typed.ok());
      CHECK(*typed == text);
    }
  }

  TEST_CASE("a wide object and a long list come back") {
    Value wide = Value::object();
    Value list = Value::array();
    for (int i = 0; i < 100'000; ++i) {
      wide.append_member("key " + std::to_string(i), i);
      list.push_back(i * 0.5);
    }
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer bytes = encoded(*serializer, arr(wide, list));
      const Value again = decoded(*serializer, bytes.view());
      REQUIRE(again[0].size() == wide.size());
      CHECK(again[0].members()[99'999].value == 99'999);
      CHECK(again[1] == list);
    }
  }
}

}  // namespace weft::test
