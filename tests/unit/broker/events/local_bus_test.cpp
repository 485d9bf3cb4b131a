#include "broker/events/local_bus.h"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "broker/broker.h"

namespace weft {

namespace {

struct Lines final : LogSink {
  void write(const LogRecord& record) override { text += std::string(record.text) + "\n"; }
  std::string text;
};

}  // namespace

TEST_SUITE("local bus") {
  TEST_CASE("listeners hear what fits their pattern, in order of subscription") {
    LocalBus bus{Logger()};
    std::string heard;
    const auto note = [&heard](std::string mark) {
      return [&heard, mark](std::string_view event, const Value& payload) {
        heard += mark + "(" + std::string(event) + " " + std::to_string(payload["n"].i64()) + ")";
      };
    };
    bus.subscribe("$node.*", note("a"));
    bus.subscribe("**", note("b"));
    bus.subscribe("$node.connected", note("c"));
    bus.publish("$node.connected", Value{{"n", 1}});
    CHECK(heard == "a($node.connected 1)b($node.connected 1)c($node.connected 1)");
    heard.clear();
    bus.publish("$broker.started", Value{{"n", 2}});
    CHECK(heard == "b($broker.started 2)");
  }

  TEST_CASE("a listener may end its own subscription, another's, or add one while an event is told") {
    LocalBus bus{Logger()};
    std::string heard;
    std::uint64_t a = 0, c = 0;
    const auto add_late = [&] {
      bus.subscribe("e", [&](std::string_view, const Value&) { heard += "late "; });
    };
    a = bus.subscribe("e", [&](std::string_view, const Value&) {
      heard += "a ";
      bus.unsubscribe(a);  // The closure that runs must stay.
      bus.unsubscribe(c);
      heard += "a' ";
    });
    bus.subscribe("e", [&](std::string_view, const Value&) {
      heard += "b ";
      if (heard.size() < 10) add_late();
    });
    c = bus.subscribe("e", [&](std::string_view, const Value&) { heard += "c "; });
    bus.publish("e", {});
    CHECK(heard == "a a' b late ");
    heard = "----------";
    bus.publish("e", {});
    CHECK(heard == "----------b late ");
  }

  TEST_CASE("what a listener throws is logged, and the others still hear") {
    auto lines = std::make_shared<Lines>();
    LocalBus bus{Logger(lines, "n", "broker", LogLevel::kInfo)};
    int heard = 0;
    bus.subscribe("e", [](std::string_view, const Value&) { throw std::runtime_error("oops"); });
    bus.subscribe("e", [](std::string_view, const Value&) { throw 7; });
    bus.subscribe("e", [&heard](std::string_view, const Value&) { ++heard; });
    bus.publish("e", {});
    CHECK(heard == 1);
    CHECK(lines->text.find("oops") != std::string::npos);
  }

  TEST_CASE("a listener object ends its subscription, once, wherever it was moved, and outlives the bus") {
    auto bus = std::make_shared<LocalBus>(Logger());
    int heard = 0;
    const auto listen = [&] {
      return LocalListener(bus, bus->subscribe("e", [&](std::string_view, const Value&) { ++heard; }));
    };
    LocalListener kept;
    {
      LocalListener one = listen();
      kept = std::move(one);
    }
    bus->publish("e", {});
    CHECK(heard == 1);
    kept = listen();  // The first one ends.
    bus->publish("e", {});
    CHECK(heard == 2);
    bus.reset();
  }
}

}  // namespace weft
