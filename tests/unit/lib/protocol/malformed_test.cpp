// Bytes from a peer never crash, hang or grow memory without bound.

#include "lib/protocol/packet.h"
#include "lib/random/random.h"
#include "tests/unit/lib/protocol/codec_support.h"

namespace malformed_test {

struct Nested {
  std::string name;
  std::vector<Nested> children;
};
WEFT_FIELDS(Nested, name, children)

}  // namespace malformed_test

namespace weft::test {

namespace {

using malformed_test::Nested;

// Messages with every kind of field and value.
std::vector<Buffer> messages(const Serializer& serializer) {
  std::vector<Buffer> all;
  const Value value{{"text", "žluť \"quoted\" \n and some more of it"},
                    {"list", arr(1, -5, 1.5, nullptr, true, false, UINT64_MAX, arr(), Value::object())},
                    {"binary", Binary{"bytes"}},
                    {"time", Timestamp{1700000000123}},
                    {"deep", {{"er", {{"name", "n"}, {"children", arr()}}}}}};
  RequestPacket request;
  request.id = "22222222-0000-4000-8000-000000000006";
  request.action = "v1.math.add";
  request.sender = "node-2";
  request.params = value;
  request.meta = Value{{"user", {{"id", 5}}}};
  request.timeout_ms = 2500.5;
  request.tracing = true;
  request.parent_id = "p";
  request.request_id = "r\"q";
  request.caller = "svc";
  request.seq = 3;
  REQUIRE(serializer.encode(request, all.emplace_back()).ok());
  ResponsePacket response;
  response.id = "1";
  response.success = false;
  response.error = Value{{"name", "Error"}, {"message", "m"}, {"data", value}};
  response.headers_null = true;
  REQUIRE(serializer.encode(response, all.emplace_back()).ok());
  EventPacket event;
  event.event = "user.created";
  event.data = value;
  event.groups = arr("a", "b");
  REQUIRE(serializer.encode(event, all.emplace_back()).ok());
  REQUIRE(serializer.encode(value, all.emplace_back()).ok());
  return all;
}

template <typename Packet>
bool looks_good(const Serializer& serializer, BytesView message) {
  Packet packet;
  return serializer.decode(message, packet).ok();
}

// Reads a message in every way there is, and writes what was read. Whether it was good is of no interest.
void exercise(const Serializer& serializer, BytesView message) {
  Buffer out;
  Value tree;
  if (serializer.decode(message, tree).ok()) (void)serializer.encode(tree, out).ok();
  RequestPacket request;
  if (serializer.decode(message, request).ok()) {
    (void)serializer.encode(request, out).ok();
    (void)request.params.as<Nested>().ok();
    (void)request.params.to_value().ok();
    (void)request.meta.to_value().ok();
  }
  ResponsePacket response;
  if (serializer.decode(message, response).ok()) {
    (void)serializer.encode(response, out).ok();
    (void)response.error.to_value().ok();
  }
  EventPacket event;
  if (serializer.decode(message, event).ok()) {
    (void)serializer.encode(event, out).ok();
    (void)event.groups.as<std::vector<std::string>>().ok();
    (void)event.data.to_value().ok();
  }
  serializer.read(message, [](ValueReader& reader) {
    for (int i = 0; i < 50 && reader.next().kind != Token::Kind::kError; ++i) {
      if (i % 3 == 2) reader.skip();
    }
    (void)reader.error();
  });
}

}  // namespace

TEST_SUITE("malformed messages") {
  TEST_CASE("a message cut anywhere is an error, whatever lies behind it") {
    for (const auto name : kSerializers) {
      CAPTURE(name);
      const auto serializer = serializer_of(name);
      for (const Buffer& message : messages(*serializer)) {
        for (std::size_t size = 0; size < message.size(); ++size) {
          for (const char padding : {'}', '"', '\0', '\xc0', ']'}) {
            const TightBytes cut(message.view().substr(0, size), padding);
            Value tree;
            const bool any = serializer->decode(cut.view(), tree).ok() ||
                             looks_good<RequestPacket>(*serializer, cut.view()) ||
                             looks_good<ResponsePacket>(*serializer, cut.view()) ||
                             looks_good<EventPacket>(*serializer, cut.view());
            if (any) FAIL_CHECK("accepted ", size, " of ", message.size(), " bytes");
          }
        }
      }
    }
  }

  TEST_CASE("a message with any byte changed is read or refused") {
    SeededRandom random(7);
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      for (const Buffer& message : messages(*serializer)) {
        for (std::size_t at = 0; at < message.size(); ++at) {
          for (int i = 0; i < 6; ++i) {
            std::string changed(message.view());
            constexpr std::string_view kPoison = "\"\\{}[],:\x00\xff\xc1\xdf\xdd\xdb\x80\x90-e";
            changed[at] =
                i < 3 ? kPoison[random.below(kPoison.size())] : static_cast<char>(random.below(256));
            if (i == 5) changed.erase(at, 1 + random.below(8));
            exercise(*serializer, TightBytes(changed, '}').view());
          }
        }
      }
    }
  }

  TEST_CASE("noise is read or refused") {
    SeededRandom random(8);
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      for (int i = 0; i < 20000; ++i) {
        std::string noise(random.below(40), '\0');
        constexpr std::string_view kAlphabet = "{}[]:,\"\\u0019dtfnea. -";
        for (char& c : noise) {
          c = name == "JSON" ? kAlphabet[random.below(kAlphabet.size())]
                             : static_cast<char>(random.below(256));
        }
        exercise(*serializer, TightBytes(noise, '\x80').view());
      }
    }
  }

  TEST_CASE("nesting beyond the limit is an error of that message, in each way to read it") {
    for (const auto name : kSerializers) {
      CAPTURE(name);
      const auto serializer = serializer_of(name);
      const bool is_json = name == "JSON";
      for (const int depth : {201, 1000, 100'000}) {
        const auto size = static_cast<std::size_t>(depth);
        const std::string nested = is_json ? std::string(size, '[') + std::string(size, ']')
                                           : std::string(size - 1, '\x91') + '\x90';
        const std::string objects = [&] {
          std::string text;
          for (int i = 0; i < depth; ++i)
            text += is_json ? "{\"children\":["
                            : "\x81\xa8"
                              "children\x91";
          text += is_json ? "1" : "\x01";
          if (is_json) {
            for (int i = 0; i < depth; ++i) text += "]}";
          }
          return text;
        }();
        for (const std::string& bytes : {nested, objects}) {
          const TightBytes message(bytes, '\0');
          Value tree;
          CHECK_FALSE(serializer->decode(message.view(), tree).ok());
          CHECK_FALSE(Payload::slice(*serializer, message.view()).as<Nested>().ok());
          CHECK_FALSE(Payload::slice(*serializer, message.view()).to_value().ok());
          serializer->read(message.view(), [](ValueReader& reader) {
            reader.skip();
            CHECK(reader.next().kind == Token::Kind::kError);
          });
          const std::string request = is_json ? "{\"id\":\"1\",\"action\":\"a\",\"params\":" + bytes + "}"
                                              : "\x83\xa2id\xa1"
                                                "1\xa6"
                                                "action\xa1"
                                                "a\xa6params" +
                                                    bytes;
          CHECK_FALSE(looks_good<RequestPacket>(*serializer, TightBytes(request, '\0').view()));
        }
      }
      const Buffer fine = encoded(*serializer, nested_arrays(200));
      Value tree;
      CHECK(serializer->decode(fine.view(), tree).ok());
    }
  }

  TEST_CASE("after a broken message the next good one is read") {
    for (const auto name : kSerializers) {
      const auto serializer = serializer_of(name);
      const Buffer good = encoded(*serializer, Value{{"id", "1"}, {"action", "a"}});
      for (const std::string_view bad :
           {std::string_view("{\"id\":\"1\",\"action"), std::string_view("\xc1"), std::string_view()}) {
        const Buffer bytes = to_buffer(bad);
        CHECK_FALSE(looks_good<RequestPacket>(*serializer, bytes.view()));
        CHECK(looks_good<RequestPacket>(*serializer, good.view()));
        CHECK(decoded(*serializer, good.view())["id"] == "1");
      }
    }
  }
}

}  // namespace weft::test
