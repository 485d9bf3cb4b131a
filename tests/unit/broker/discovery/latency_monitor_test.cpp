#include "broker/discovery/latency_monitor.h"

#include <doctest/doctest.h>

#include <set>

using namespace weft;
using namespace std::chrono_literals;

namespace {

using Ids = std::vector<std::string>;

struct Setup {
  explicit Setup(const LatencySettings& settings = {}) : monitor(nodes, settings, random, now) {
    nodes.self().hostname = "host-a";
  }
  Node& join(std::string_view id, std::string_view host) {
    Node& node = *nodes.apply_info(id, {{"seq", 1}, {"hostname", host}}, now).node;
    monitor.on_node_connected(id, now);
    return node;
  }
  NodeCatalog nodes{"me", "my instance"};
  SeededRandom random{1};
  Instant now{1h};
  LatencyMonitor monitor;
};

}  // namespace

TEST_SUITE("latency monitor") {
  TEST_CASE("one node of each host is pinged each interval, in the long run every one") {
    Setup setup;
    for (const char* id : {"b1", "b2", "b3"}) setup.join(id, "host-b");
    setup.join("c1", "host-c");
    std::set<std::string> of_b;
    Instant last = setup.now - 10s;
    for (int i = 0; i < 50; ++i) {
      setup.now = setup.monitor.next_tick();
      CHECK(setup.now - last == 10s);
      last = setup.now;
      const Ids pings = setup.monitor.tick(setup.now);
      REQUIRE(pings.size() == 2);
      CHECK(pings[0].front() == 'b');
      CHECK(pings[1] == "c1");
      of_b.insert(pings[0]);
      for (const std::string& id : pings) setup.monitor.on_pong(id, 5ms);
    }
    CHECK(of_b.size() == 3);
  }

  TEST_CASE("the average of the last round trips is every node's of that host") {
    Setup setup({.collect_count = 3});
    Node& b1 = setup.join("b1", "host-b");
    Node& b2 = setup.join("b2", "host-b");
    Node& c = setup.join("c", "host-c");
    setup.monitor.on_pong("b1", 10ms);
    CHECK(b2.latency_ms == 10.0);
    for (const Duration elapsed : {20ms, 30ms, 40ms}) setup.monitor.on_pong("b2", elapsed);
    CHECK(b1.latency_ms == 30.0);
    CHECK_FALSE(c.latency_ms.has_value());
    Node& b3 = setup.join("b3", "host-b");
    CHECK(b3.latency_ms == 30.0);
    CHECK_FALSE(setup.nodes.self().latency_ms.has_value());
    setup.join("a", "host-a");
    setup.monitor.on_pong("a", 100us);
    CHECK(setup.nodes.self().latency_ms == doctest::Approx(0.1));
  }

  TEST_CASE("a host that is new is measured at once, and the others are not for that") {
    Setup setup;
    setup.join("b", "host-b");
    CHECK(setup.monitor.tick(setup.now) == Ids{"b"});
    setup.monitor.on_pong("b", 1ms);
    setup.now += 3s;
    CHECK(setup.monitor.tick(setup.now).empty());
    setup.join("c", "host-c");
    CHECK(setup.monitor.next_tick() == setup.now);
    CHECK(setup.monitor.tick(setup.now) == Ids{"c"});
    CHECK(setup.monitor.next_tick() == setup.now + 7s);
  }

  TEST_CASE("a host is dropped with its last node, and measured anew when it comes back") {
    Setup setup;
    Node& b = setup.join("b", "host-b");
    setup.monitor.on_pong("b", 50ms);
    setup.nodes.mark_offline(b, setup.now);
    setup.now += 10s;
    CHECK(setup.monitor.tick(setup.now).empty());
    setup.join("b", "host-b");
    CHECK_FALSE(b.latency_ms.has_value());
    CHECK(setup.monitor.tick(setup.now) == Ids{"b"});
    setup.monitor.on_pong("b", 2ms);
    CHECK(b.latency_ms == 2.0);
  }

  TEST_CASE("nodes without a host name stand for themselves; answers that make no sense change nothing") {
    Setup setup;
    Node& b = setup.join("b", "");
    Node& c = setup.join("c", "");
    setup.monitor.on_pong("b", 4ms);
    setup.monitor.on_pong("c", -4ms);  // A clock that was set back.
    CHECK(b.latency_ms == 4.0);
    CHECK(c.latency_ms == 0.0);
    setup.monitor.on_pong("nobody", 1ms);
    setup.monitor.on_pong("me", 1ms);
    CHECK_FALSE(setup.nodes.self().latency_ms.has_value());
  }
}
