// The rules for the fields of incoming packets: see lib/protocol/PROTOCOL.md.

#include "tests/unit/lib/protocol/codec_support.h"

namespace weft::test {

namespace {

// A decoded packet together with the bytes it points into.
template <typename Packet>
struct Decoded {
  std::unique_ptr<Serializer> serializer;
  Buffer bytes;
  Packet packet;
  bool ok = false;
};

template <typename Packet>
Decoded<Packet> decode_as(std::string_view serializer, const Value& message) {
  Decoded<Packet> out{serializer_of(serializer), {}, {}};
  out.bytes = encoded(*out.serializer, message);
  out.ok = out.serializer->decode(out.bytes.view(), out.packet).ok();
  return out;
}

template <typename Packet>
bool accepts(std::string_view serializer, const Value& message) {
  return decode_as<Packet>(serializer, message).ok;
}

}  // namespace

TEST_SUITE("packet envelope") {
  TEST_CASE("a request of two fields is enough; what is not there is absent") {
    for (const auto name : kSerializers) {
      const auto in = decode_as<RequestPacket>(name, Value{{"id", "1"}, {"action", "a.b"}});
      REQUIRE(in.ok);
      CHECK(in.packet.id == "1");
      CHECK(in.packet.action == "a.b");
      CHECK(in.packet.ver == "");
      CHECK(in.packet.sender == "");
      CHECK(in.packet.params.is_absent());
      CHECK(in.packet.meta.is_absent());
      CHECK(in.packet.headers.is_absent());
      CHECK_FALSE(in.packet.timeout_ms.has_value());
      CHECK(in.packet.level == 1);
      CHECK_FALSE(in.packet.tracing.has_value());
      CHECK(in.packet.parent_id == "");
      CHECK(in.packet.request_id == "");
      CHECK(in.packet.caller == "");
      CHECK_FALSE(in.packet.has_stream);
      CHECK_FALSE(in.packet.stream);
      CHECK_FALSE(in.packet.seq.has_value());
    }
  }

  TEST_CASE("nothing of the packet decoded before remains") {
    for (const auto name : kSerializers) {
      auto in = decode_as<RequestPacket>(name, Value{{"id", "1"},
                                                     {"action", "a.b"},
                                                     {"params", 1},
                                                     {"timeout", 5},
                                                     {"tracing", true},
                                                     {"stream", true},
                                                     {"seq", 3},
                                                     {"caller", "x"}});
      const Buffer next = encoded(*in.serializer, Value{{"id", "2"}, {"action", "c"}});
      REQUIRE(in.serializer->decode(next.view(), in.packet).ok());
      CHECK(in.packet.id == "2");
      CHECK(in.packet.params.is_absent());
      CHECK_FALSE(in.packet.timeout_ms.has_value());
      CHECK_FALSE(in.packet.tracing.has_value());
      CHECK_FALSE(in.packet.has_stream);
      CHECK_FALSE(in.packet.seq.has_value());
      CHECK(in.packet.caller == "");
    }
  }

  TEST_CASE("a packet without its essential fields, or with another type in them, is refused") {
    for (const auto name : kSerializers) {
      CAPTURE(name);
      const Value odd[] = {Value(), Value(5), Value(true), Value::array(), Value::object(), Value(1.5)};
      for (const Value& wrong : odd) {
        CHECK_FALSE(accepts<RequestPacket>(name, Value{{"id", wrong}, {"action", "a"}}));
        CHECK_FALSE(accepts<RequestPacket>(name, Value{{"id", "1"}, {"action", wrong}}));
        CHECK_FALSE(accepts<ResponsePacket>(name, Value{{"id", wrong}, {"success", true}}));
        CHECK_FALSE(accepts<EventPacket>(name, Value{{"id", "1"}, {"event", wrong}}));
        CHECK_FALSE(accepts<RequestPacket>(name, wrong));
        CHECK_FALSE(accepts<ResponsePacket>(name, wrong));
        CHECK_FALSE(accepts<EventPacket>(name, wrong));
      }
      CHECK_FALSE(accepts<RequestPacket>(name, Value{{"id", "1"}}));
      CHECK_FALSE(accepts<RequestPacket>(name, Value{{"action", "a"}}));
      CHECK_FALSE(accepts<ResponsePacket>(name, Value{{"success", true}}));
      CHECK_FALSE(accepts<EventPacket>(name, Value{{"id", "1"}}));
      CHECK_FALSE(accepts<RequestPacket>(name, Value("text")));
      CHECK(accepts<EventPacket>(name, Value{{"event", "e"}}));  // Events go without an id.
    }
  }

  TEST_CASE("other fields of an unexpected type count as absent") {
    for (const auto name : kSerializers) {
      const auto request = decode_as<RequestPacket>(name, Value{{"id", "1"},
                                                                {"action", "a"},
                                                                {"meta", 5},
                                                                {"headers", arr(1)},
                                                                {"timeout", "soon"},
                                                                {"level", 1.5},
                                                                {"tracing", 1},
                                                                {"parentID", 5},
                                                                {"requestID", arr()},
                                                                {"caller", Value::object()},
                                                                {"stream", 1},
                                                                {"seq", "x"},
                                                                {"ver", 5},
                                                                {"sender", nullptr}});
      REQUIRE(request.ok);
      CHECK(request.packet.meta.is_absent());
      CHECK(request.packet.headers.is_absent());
      CHECK_FALSE(request.packet.timeout_ms.has_value());
      CHECK(request.packet.level == 1);
      CHECK_FALSE(request.packet.tracing.has_value());
      CHECK(request.packet.parent_id == "");
      CHECK(request.packet.request_id == "");
      CHECK(request.packet.caller == "");
      CHECK_FALSE(request.packet.has_stream);
      CHECK_FALSE(request.packet.seq.has_value());
      CHECK(request.packet.ver == "");
      CHECK(request.packet.sender == "");

      const auto response = decode_as<ResponsePacket>(
          name,
          Value{{"id", "1"}, {"success", 1}, {"error", "e"}, {"meta", "m"}, {"stream", 0}, {"seq", 1.5}});
      REQUIRE(response.ok);
      CHECK_FALSE(response.packet.success);
      CHECK(response.packet.error.is_absent());
      CHECK(response.packet.meta.is_absent());
      CHECK_FALSE(response.packet.stream.has_value());
      CHECK_FALSE(response.packet.seq.has_value());

      const auto event = decode_as<EventPacket>(
          name, Value{{"event", "e"}, {"groups", "g"}, {"broadcast", "yes"}, {"level", -1}});
      REQUIRE(event.ok);
      CHECK(event.packet.groups.is_absent());
      CHECK_FALSE(event.packet.broadcast);
      CHECK(event.packet.level == 1);
    }
  }

  TEST_CASE("null is absent, except where it means something") {
    for (const auto name : kSerializers) {
      const auto request = decode_as<RequestPacket>(name, Value{{"id", "1"},
                                                                {"action", "a"},
                                                                {"params", nullptr},
                                                                {"meta", nullptr},
                                                                {"headers", nullptr},
                                                                {"timeout", nullptr},
                                                                {"level", nullptr},
                                                                {"stream", nullptr},
                                                                {"seq", nullptr}});
      REQUIRE(request.ok);
      REQUIRE_FALSE(request.packet.params.is_absent());
      CHECK(request.packet.params.value().is_null());
      CHECK(request.packet.meta.is_absent());
      CHECK(request.packet.headers.is_absent());
      CHECK_FALSE(request.packet.timeout_ms.has_value());
      CHECK(request.packet.level == 1);
      CHECK(request.packet.has_stream);
      CHECK_FALSE(request.packet.stream);
      CHECK_FALSE(request.packet.seq.has_value());

      const auto response = decode_as<ResponsePacket>(
          name,
          Value{{"id", "1"}, {"success", true}, {"data", nullptr}, {"headers", nullptr}, {"error", nullptr}});
      REQUIRE(response.ok);
      REQUIRE_FALSE(response.packet.data.is_absent());
      CHECK(response.packet.data.value().is_null());
      CHECK(response.packet.headers_null);
      CHECK(response.packet.headers.is_absent());
      CHECK(response.packet.error.is_absent());
    }
  }

  TEST_CASE("numbers of the envelope are taken in either form") {
    for (const auto name : kSerializers) {
      const auto in = decode_as<RequestPacket>(
          name, Value{{"id", "1"}, {"action", "a"}, {"timeout", 1.25}, {"level", 3.0}, {"seq", 7.0}});
      REQUIRE(in.ok);
      CHECK(in.packet.timeout_ms == 1.25);
      CHECK(in.packet.level == 3);
      CHECK(in.packet.seq == 7);
    }
  }

  TEST_CASE("a timeout that is no number is none") {
    const auto in = decode_as<RequestPacket>(
        "MsgPack", Value{{"id", "1"}, {"action", "a"}, {"timeout", std::stod("nan")}});
    REQUIRE(in.ok);
    CHECK_FALSE(in.packet.timeout_ms.has_value());
  }

  TEST_CASE("of a field that comes twice the last one counts") {
    const auto json = serializer_of("JSON");
    const Buffer text = to_buffer(
        R"({"id":"1","id":"2","action":"a","params":1,"params":{"x":2},"timeout":5,"timeout":null})");
    RequestPacket packet;
    REQUIRE(json->decode(text.view(), packet).ok());
    CHECK(packet.id == "2");
    CHECK(packet.params.value() == Value{{"x", 2}});
    CHECK_FALSE(packet.timeout_ms.has_value());

    const auto msgpack = serializer_of("MsgPack");
    // {"id":"1","id":"2","action":"a","params":1,"params":[]}
    const Buffer bytes = from_hex("85a26964a131a26964a132a6616374696f6ea161a6706172616d7301a6706172616d7390");
    REQUIRE(msgpack->decode(bytes.view(), packet).ok());
    CHECK(packet.id == "2");
    CHECK(packet.params.value() == arr());
  }

  TEST_CASE("fields nobody knows are passed over, whatever is in them") {
    for (const auto name : kSerializers) {
      const auto in = decode_as<RequestPacket>(name, Value{{"paramsType", 1},
                                                           {"", "x"},
                                                           {"iD", "no"},
                                                           {"x", {{"id", "deep"}, {"l", arr(arr(), 1)}}},
                                                           {"id", "1"},
                                                           {"action", "a"},
                                                           {"pArams", 3},
                                                           {"stream2", 4},
                                                           {"seqq", 5},
                                                           {"requestid", 6}});
      REQUIRE(in.ok);
      CHECK(in.packet.id == "1");
      CHECK(in.packet.params.is_absent());
    }
  }

  TEST_CASE("JSON keys and texts of the envelope may be escaped, each as long as it likes") {
    const auto json = serializer_of("JSON");
    const std::string long_text(1000, 'x');
    const Buffer text =
        to_buffer("{\"\\u0069d\":\"a\\u00e9\\n\",\"action\":\"\\ud83d\\ude00" + long_text +
                  "\\\"\",\"caller\":\"\\ud800\",\"parentID\":\"p\\/\",\"requestID\":\"plain\"}");
    RequestPacket packet;
    REQUIRE(json->decode(text.view(), packet).ok());
    CHECK(packet.id == "a\xc3\xa9\n");
    CHECK(packet.action == "\xf0\x9f\x98\x80" + long_text + "\"");
    CHECK(packet.caller == "\xed\xa0\x80");
    CHECK(packet.parent_id == "p/");
    CHECK(packet.request_id == "plain");
  }

  TEST_CASE("MessagePack keys may be binary, text or integers, and nothing else") {
    const auto msgpack = serializer_of("MsgPack");
    RequestPacket packet;
    // {bin "id": "1", 7: true, "action": "a"}
    const Buffer good = from_hex("83c4026964a13107c3a6616374696f6ea161");
    REQUIRE(msgpack->decode(good.view(), packet).ok());
    CHECK(packet.id == "1");
    for (const std::string_view key : {"c0", "c3", "cb3ff0000000000000", "90", "80", "d6ff00000000"}) {
      const Buffer bad = from_hex("83a26964a131" + std::string(key) + "c3a6616374696f6ea161");
      CHECK_FALSE(msgpack->decode(bad.view(), packet).ok());
    }
  }
}

}  // namespace weft::test
