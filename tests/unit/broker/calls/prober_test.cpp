#include "broker/calls/prober.h"

#include <doctest/doctest.h>

using namespace weft;
using namespace std::chrono_literals;

namespace {

using Ids = std::vector<std::string>;

struct Setup {
  Setup() { prober.start(now); }
  Node& join(std::string_view id, std::string_view type = "weft") {
    Node& node = *nodes.apply_info(id, {{"seq", 1}, {"client", {{"type", type}}}}, now).node;
    prober.on_heard(node, now);
    return node;
  }
  // Lets time pass in ticks, up to `until` or the first that brings something.
  Prober::Output next(Instant until) {
    while (prober.next_tick() <= until) {
      now = prober.next_tick();
      prober.tick(now);
      Prober::Output output = prober.take_output();
      if (!output.ping.empty() || !output.suspected.empty() || !output.hung.empty() || !output.lost.empty()) {
        return output;
      }
    }
    now = until;
    return {};
  }
  [[nodiscard]] bool is_quiet(Duration span) {
    const Prober::Output output = next(now + span);
    return output.ping.empty() && output.suspected.empty() && output.hung.empty() && output.lost.empty();
  }

  NodeCatalog nodes{"m", "my instance"};
  Instant now{1h};
  Prober prober{nodes, {}};
};

}  // namespace

TEST_SUITE("prober") {
  TEST_CASE("a silent node is asked, told on, and taken for hung, in less than two seconds") {
    Setup setup;
    Node& node = setup.join("a");
    const Instant begin = setup.now;
    CHECK(setup.next(kNever - 1h).ping == Ids{"a"});
    CHECK(setup.now - begin == 800ms);
    CHECK(setup.next(kNever - 1h).suspected == Ids{"a"});
    CHECK(setup.now - begin == 1100ms);
    CHECK(setup.next(kNever - 1h).hung == Ids{"a"});
    CHECK(setup.now - begin == 1800ms);
    node.available = false;
    setup.prober.on_hung(node, setup.now);
    CHECK(setup.next(kNever - 1h).lost == Ids{"a"});
    CHECK(setup.now - begin == 11800ms);
    CHECK(setup.is_quiet(1min));
  }

  TEST_CASE("who answers, or is heard of otherwise, is left in peace; who is back in time is not lost") {
    Setup setup;
    Node& node = setup.join("a");
    CHECK(setup.next(setup.now + 1s).ping == Ids{"a"});
    setup.prober.on_heard(node, setup.now);
    CHECK(setup.is_quiet(750ms));
    for (int i = 0; i < 20; ++i) {
      setup.prober.on_heard(node, setup.now);
      CHECK(setup.is_quiet(500ms));
    }
    node.available = false;
    setup.prober.on_hung(node, setup.now);
    CHECK(setup.is_quiet(9s));
    node.available = true;
    CHECK_FALSE(setup.prober.on_back(node, setup.now));
    setup.prober.on_heard(node, setup.now);
    CHECK(setup.is_quiet(700ms));
    setup.prober.on_heard(node, setup.now);
    CHECK(setup.is_quiet(700ms));
    setup.prober.on_heard(node, setup.now);
    CHECK(setup.is_quiet(700ms));
  }

  TEST_CASE("only nodes that are known to answer pings are asked") {
    Setup setup;
    setup.join("js", "nodejs");
    setup.join("other", "something else");
    CHECK(setup.next(setup.now + 2s).ping == Ids{"js"});
  }

  TEST_CASE("a process that was held up itself blames nobody before it has read what came meanwhile") {
    Setup setup;
    Node& node = setup.join("a");
    CHECK(setup.next(setup.now + 1s).ping == Ids{"a"});
    setup.now += 1min;
    setup.prober.tick(setup.now);  // Before the sockets had their turn.
    CHECK(setup.prober.take_output().hung.empty());
    setup.prober.on_heard(node, setup.now);
    CHECK(setup.is_quiet(700ms));
  }

  TEST_CASE("whom others suspect is asked at once, but not told on, and not if it was just heard of") {
    Setup setup;
    Node& node = setup.join("a");
    setup.prober.on_suspected("a", setup.now);
    setup.prober.on_suspected("m", setup.now);
    setup.prober.on_suspected("nobody", setup.now);
    CHECK(setup.prober.take_output().ping.empty());
    setup.now += 300ms;
    setup.prober.on_suspected("a", setup.now);
    setup.prober.on_suspected("a", setup.now);
    CHECK(setup.prober.take_output().ping == Ids{"a"});
    const Instant asked = setup.now;
    const Prober::Output output = setup.next(kNever - 1h);
    CHECK(output.hung == Ids{"a"});
    CHECK(output.suspected.empty());
    CHECK(setup.now - asked <= 1100ms);
    CHECK_FALSE(node.local);
  }

  TEST_CASE("who spoke a moment ago is vouched for, and not who was only told of") {
    Setup setup;
    Node& node = setup.join("a");
    CHECK(setup.prober.heard_lately(node, setup.now));
    CHECK(setup.prober.heard_lately(node, setup.now + 1800ms));
    CHECK_FALSE(setup.prober.heard_lately(node, setup.now + 1900ms));
    Node& told = *setup.nodes.apply_info("b", {{"seq", 1}, {"client", {{"type", "weft"}}}}, setup.now).node;
    CHECK_FALSE(setup.prober.on_back(told, setup.now));
    CHECK_FALSE(setup.prober.heard_lately(told, setup.now));
    setup.prober.on_hung(told, setup.now);
    told.instance_id = "another";
    CHECK(setup.prober.on_back(told, setup.now));
    CHECK_FALSE(setup.prober.is_hung("b"));
  }

  TEST_CASE("in a large mesh each node is watched by a few, and by those who call it") {
    Setup setup;
    for (int i = 0; i < 26; ++i) {
      const std::string id(1, static_cast<char>('a' + i));
      if (id != "m") setup.join(id);
    }
    setup.prober.on_asked(*setup.nodes.find("c"), setup.now);
    CHECK(setup.next(setup.now + 1s).ping == Ids{"n", "o", "p", "q", "c"});
    setup.now += 1min;
    for (const char* id : {"n", "o", "p", "q", "c"}) setup.prober.on_heard(*setup.nodes.find(id), setup.now);
    setup.prober.tick(setup.now);
    (void)setup.prober.take_output();
    CHECK(setup.next(setup.now + 900ms).ping == Ids{"n", "o", "p", "q"});
  }
}
