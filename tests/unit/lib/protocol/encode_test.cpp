// The rules for the fields of outgoing packets.

#include "lib/protocol/packet.h"
#include "tests/unit/lib/protocol/codec_support.h"

namespace encode_test {

struct Point {
  std::int64_t x = 0, y = 0;
};
WEFT_FIELDS(Point, x, y)

struct Named {
  std::string name;
};
WEFT_FIELDS(Named, name)

}  // namespace encode_test

namespace weft::test {

namespace {

using encode_test::Named;
using encode_test::Point;

// The packet as a peer sees it.
template <typename Packet>
Value seen(const Serializer& serializer, const Packet& packet) {
  Buffer out;
  const auto result = serializer.encode(packet, out);
  REQUIRE_MESSAGE(result.ok(), result.error().to_string());
  return decoded(serializer, out.view());
}

const std::string kBadText = "caf\xe9";

}  // namespace

TEST_SUITE("packet encoding") {
  TEST_CASE("a request says everything a JavaScript node says, with null and {} for what is not there") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      RequestPacket packet;
      packet.sender = "n1";
      packet.id = "1";
      packet.action = "a.b";
      CHECK(seen(*serializer, packet) == Value{{"id", "1"},
                                               {"action", "a.b"},
                                               {"meta", Value::object()},
                                               {"headers", Value::object()},
                                               {"level", 1},
                                               {"tracing", nullptr},
                                               {"parentID", nullptr},
                                               {"requestID", nullptr},
                                               {"caller", nullptr},
                                               {"stream", false},
                                               {"ver", "5"},
                                               {"sender", "n1"}});
      packet.params = Value(nullptr);
      packet.meta = Value{{"user", 1}};
      packet.headers = Value{{"h", 2}};
      packet.timeout_ms = 0;
      packet.level = 2;
      packet.tracing = false;
      packet.parent_id = "p";
      packet.request_id = "r";
      packet.caller = "c";
      packet.stream = true;
      packet.seq = 0;
      CHECK(seen(*serializer, packet) == Value{{"id", "1"},
                                               {"action", "a.b"},
                                               {"params", nullptr},
                                               {"meta", {{"user", 1}}},
                                               {"headers", {{"h", 2}}},
                                               {"timeout", 0},
                                               {"level", 2},
                                               {"tracing", false},
                                               {"parentID", "p"},
                                               {"requestID", "r"},
                                               {"caller", "c"},
                                               {"stream", true},
                                               {"seq", 0},
                                               {"ver", "5"},
                                               {"sender", "n1"}});
      packet.has_stream = false;
      CHECK_FALSE(seen(*serializer, packet).contains("stream"));
      packet.timeout_ms = 12.5;
      CHECK(seen(*serializer, packet)["timeout"].f64() == 12.5);
    }
  }

  TEST_CASE("a response has data when there is some, and neither stream nor seq when it is plain") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      ResponsePacket packet;
      packet.sender = "n1";
      packet.id = "1";
      const Value plain{
          {"id", "1"},  {"meta", Value::object()}, {"headers", Value::object()}, {"success", true},
          {"ver", "5"}, {"sender", "n1"}};
      CHECK(seen(*serializer, packet) == plain);
      packet.data = Value(nullptr);
      CHECK(seen(*serializer, packet)["data"].is_null());
      CHECK(seen(*serializer, packet).contains("data"));
      packet.data = Value(5);
      packet.stream = false;
      packet.seq = 2;
      CHECK(seen(*serializer, packet)["data"] == 5);
      CHECK(seen(*serializer, packet)["stream"] == false);
      CHECK(seen(*serializer, packet)["seq"] == 2);
    }
  }

  TEST_CASE("a failing response carries its error and null data; before a context was made, null headers") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      ResponsePacket packet;
      packet.id = "1";
      packet.success = false;
      packet.error = Value{{"name", "Error"}, {"message", "m"}};
      packet.headers_null = true;
      const Value map = seen(*serializer, packet);
      CHECK(map["error"]["message"].str() == "m");
      REQUIRE(map.contains("data"));
      CHECK(map["data"].is_null());
      REQUIRE(map.contains("headers"));
      CHECK(map["headers"].is_null());
    }
  }

  TEST_CASE("an event without payload carries null; groups only when it has some") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      EventPacket packet;
      packet.sender = "n1";
      packet.id = "1";
      packet.event = "e";
      const Value bare{{"id", "1"},
                       {"event", "e"},
                       {"data", nullptr},
                       {"broadcast", false},
                       {"meta", Value::object()},
                       {"headers", Value::object()},
                       {"level", 1},
                       {"tracing", nullptr},
                       {"parentID", nullptr},
                       {"requestID", nullptr},
                       {"caller", nullptr},
                       {"needAck", nullptr},
                       {"ver", "5"},
                       {"sender", "n1"}};
      CHECK(seen(*serializer, packet) == bare);
      packet.groups = arr("a", "a");
      packet.broadcast = true;
      CHECK(seen(*serializer, packet)["groups"] == arr("a", "a"));
      CHECK(seen(*serializer, packet)["broadcast"] == true);
    }
  }

  TEST_CASE("meta and headers that are null are written as objects") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      RequestPacket packet;
      packet.meta = Value(nullptr);
      packet.headers = Value::object();
      CHECK(seen(*serializer, packet)["meta"] == Value::object());
      CHECK(seen(*serializer, packet)["headers"] == Value::object());
    }
  }

  TEST_CASE("described structs are written as objects, borrowed or owned") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Point point{1, -2};
      RequestPacket packet;
      packet.params = Payload::borrow(point);
      packet.meta = Payload::own(Named{"bob"});
      CHECK(seen(*serializer, packet)["params"] == Value{{"x", 1}, {"y", -2}});
      CHECK(seen(*serializer, packet)["meta"] == Value{{"name", "bob"}});
    }
  }

  TEST_CASE("text that is no UTF-8 is an error of that packet, and the buffer stays as it was") {
    for (const auto name : kSerializers) {
      CAPTURE(name);
      const auto serializer = serializer_of(name);
      Buffer out;
      out.append("kept");
      const auto refused = [&](const auto& packet) {
        const auto result = serializer->encode(packet, out);
        REQUIRE_FALSE(result.ok());
        CHECK(result.error().type() == "ENCODE_ERROR");
        CHECK(out.view() == "kept");
      };
      RequestPacket request;
      request.id = kBadText;
      refused(request);
      request.id = "1";
      request.params = Value{{"deep", arr(1, kBadText)}};
      refused(request);
      request.params = Value{{kBadText, 1}};
      refused(request);
      request.params = Payload::own(Named{kBadText});
      refused(request);
      request.params = {};
      request.sender = kBadText;
      refused(request);
      ResponsePacket response;
      response.data = Value(kBadText);
      refused(response);
      EventPacket event;
      event.data = Value(kBadText);
      refused(event);
      refused(Value(kBadText));
      // Overlong forms, a code point above the last, a tail without a head, a cut sequence.
      for (const std::string text :
           {"\xc0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80", "\x80", "ok \xf0\x9f\x98", "\xff"}) {
        refused(Value(text));
      }
    }
  }

  TEST_CASE("nesting beyond what peers read is an error of that packet") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      Buffer out;
      CHECK(serializer->encode(nested_arrays(200), out).ok());
      out.clear();
      CHECK_FALSE(serializer->encode(nested_arrays(201), out).ok());
      CHECK(out.empty());
      RequestPacket packet;
      packet.params = nested_arrays(200);
      CHECK(serializer->encode(packet, out).ok());
      packet.params = nested_arrays(201);
      out.clear();
      CHECK_FALSE(serializer->encode(packet, out).ok());
      CHECK(out.empty());
    }
  }

  TEST_CASE("a serializer is chosen by name in any case; an unknown one is refused with the list") {
    CHECK(serializer_of("JSON")->name() == "JSON");
    CHECK(serializer_of("json")->name() == "JSON");
    CHECK(serializer_of("msgPACK")->name() == "MsgPack");
    for (const std::string_view name : {"", "CBOR", "JSONExt", "Msg"}) {
      const auto unknown = make_serializer(name);
      REQUIRE_FALSE(unknown.ok());
      CHECK(unknown.error().error_class() == ErrorClass::kBrokerOptions);
      CHECK(unknown.error().message().find("JSON, MsgPack") != std::string::npos);
    }
  }
}

}  // namespace weft::test
