// Packets that come and go cost no memory of their own.

#include "lib/protocol/packet.h"
#include "tests/support/allocations.h"
#include "tests/unit/lib/protocol/codec_support.h"

namespace steady_state_test {

struct Sum {
  std::int64_t a = 0;
  double b = 0;
  std::string unit;
};
WEFT_FIELDS(Sum, a, b, unit)

}  // namespace steady_state_test

namespace weft::test {

using steady_state_test::Sum;

TEST_SUITE("steady state") {
  TEST_CASE("reading, relaying and answering a request allocates nothing") {
    for (const auto name : kSerializers) {
      CAPTURE(name);
      const auto serializer = serializer_of(name);
      const Sum sum{1, 2.5, "short"};
      Buffer message;
      Buffer out;
      RequestPacket received;
      ResponsePacket answered;
      const auto round = [&] {
        RequestPacket request;
        request.sender = "node-2";
        request.id = "22222222-0000-4000-8000-000000000006";
        request.action = "v1.\"math\".add";  // With escapes in JSON.
        request.params = Payload::borrow(sum);
        request.timeout_ms = 2500.5;
        message.clear();
        bool good = serializer->encode(request, message).ok();
        good = good && serializer->decode(message.view(), received).ok();
        const auto typed = received.params.as<Sum>();
        good = good && typed.ok() && typed->b == 2.5 && received.action == request.action;
        out.clear();
        good = good && serializer->encode(received, out).ok() && out.view() == message.view();
        ResponsePacket response;
        response.id = received.id;
        response.data = Payload::borrow(*typed);
        message.clear();
        good = good && serializer->encode(response, message).ok();
        return good && serializer->decode(message.view(), answered).ok() && answered.data.as<Sum>().ok();
      };
      REQUIRE(round());
      const std::size_t before = allocation_count();
      bool good = true;
      for (int i = 0; i < 100; ++i) good = round() && good;
      const std::size_t after = allocation_count();
      CHECK(good);
      CHECK(after == before);
    }
  }

  TEST_CASE("passing over a large payload allocates nothing") {
    for (const auto name : kSerializers) {
      CAPTURE(name);
      const auto serializer = serializer_of(name);
      Value rows = Value::array();
      for (int i = 0; i < 300; ++i)
        rows.push_back(Value{{"id", i}, {"text", "some text of a common length"}});
      EventPacket event;
      event.event = "rows";
      event.data = std::move(rows);
      Buffer message;
      REQUIRE(serializer->encode(event, message).ok());
      EventPacket received;
      Buffer out;
      REQUIRE(serializer->decode(message.view(), received).ok());
      REQUIRE(serializer->encode(received, out).ok());
      const std::size_t before = allocation_count();
      const bool good = serializer->decode(message.view(), received).ok();
      out.clear();
      const bool relayed = serializer->encode(received, out).ok();
      const std::size_t after = allocation_count();
      CHECK(good);
      CHECK(relayed);
      CHECK(after == before);
    }
  }
}

}  // namespace weft::test
