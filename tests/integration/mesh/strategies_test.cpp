#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;

namespace {

// Answers after `delay()`, with the name of its node.
std::shared_ptr<Service> sleeper(std::function<Duration()> delay, ActionOptions options = {}) {
  return make_service("sleeper", [&](Service& s) {
    s.action(
        "nap",
        [delay](Context& c) -> Task<std::string> {
          co_await c.broker().sleep(delay());
          co_return c.broker().node_id();
        },
        options);
  });
}

BrokerOptions caller(std::string strategy, Value strategy_options = {}) {
  return {.registry = {.strategy = std::move(strategy),
                       .strategy_options = std::move(strategy_options),
                       .prefer_local = false}};
}

// How often each node answers `count` calls, one after the other.
std::map<std::string, int> answers(SimMesh& mesh, Broker& from, int count) {
  std::map<std::string, int> nodes;
  for (int i = 0; i < count; ++i) ++nodes[mesh.await(from.call<std::string>("sleeper.nap"))];
  return nodes;
}

}  // namespace

TEST_SUITE("strategies in a mesh") {
  TEST_CASE("of eleven brokers one answers in 2 s for half the time: its load goes to the others at once") {
    SimMesh mesh;
    BrokerOptions options = caller("PeakEwma");
    options.request_timeout = 1s;
    Broker& client = mesh.add("client", options);
    SeededRandom random(7);
    for (int i = 0; i < 11; ++i) {
      mesh.add("worker-" + std::to_string(i)).add_service(sleeper([&mesh, &random, i]() -> Duration {
        if (i == 0 && mesh.elapsed() % 30s >= 15s) return 2s;
        return from_ms(10 + 20 * random.uniform());
      }));
    }
    mesh.start();
    constexpr int kCalls = 12'000;
    int ended = 0;
    int in_time = 0;
    for (int i = 0; i < kCalls; ++i) {
      client.spawn([&]() -> Task<void> {
        const auto result = co_await client.try_call("sleeper.nap");
        ++ended;
        in_time += result.ok() ? 1 : 0;
      });
      mesh.run_for(5ms);  // Two of the slow times pass.
    }
    REQUIRE(mesh.until([&] { return ended == kCalls; }));
    MESSAGE((kCalls - in_time), " of ", kCalls, " calls took longer than 1 s.");
    CHECK(in_time >= kCalls * 0.9995);
  }

  TEST_CASE("an endpoint that owes answers is passed over, and free again when they come or its node goes") {
    for (const bool crash : {false, true}) {
      CAPTURE(crash);
      SimMesh mesh;
      Broker& a = mesh.add("a", caller("LeastRequests"));
      bool hang = false;
      const auto delay = [&hang]() -> Duration { return hang ? 10s : 1ms; };
      for (const char* id : {"b", "c"}) mesh.add(id).add_service(sleeper(delay));
      mesh.start();
      hang = true;
      int ended = 0;
      for (int i = 0; i < 3; ++i) {
        a.spawn([&]() -> Task<void> {
          (void)co_await a.try_call("sleeper.nap", {}, {.node = "b"});
          ++ended;
        });
      }
      mesh.run_for(100ms);
      hang = false;
      CHECK(answers(mesh, a, 20) == std::map<std::string, int>{{"c", 20}});
      if (crash) {
        mesh.crash("b");
        REQUIRE(mesh.until([&] { return ended == 3; }));
        mesh.add("b").add_service(sleeper(delay));
        mesh.start("b");
      }
      REQUIRE(mesh.until([&] { return ended == 3; }));
      const auto after = answers(mesh, a, 60);
      CHECK(after.size() == 2);
      CHECK(after.at("b") > 15);
    }
  }

  TEST_CASE("calls of the caller's own node count as well") {
    SimMesh mesh;
    Broker& a = mesh.add("a", caller("LeastRequests"));
    a.add_service(sleeper([]() -> Duration { return 1ms; }));
    mesh.add("b").add_service(sleeper([]() -> Duration { return 1ms; }));
    mesh.start();
    a.spawn([&]() -> Task<void> { (void)co_await a.try_call("sleeper.nap", {}, {.node = "a"}); });
    CHECK(mesh.await(a.call<std::string>("sleeper.nap")) == "b");
  }

  TEST_CASE("an action's own strategy goes before the caller's, with weights as the nodes announce them") {
    SimMesh mesh;
    Broker& a = mesh.add("a", caller("Random"));
    for (const int weight : {1, 2, 3}) {
      BrokerOptions options;
      options.metadata = {{"size", {{"weight", weight}}}};
      mesh.add("w" + std::to_string(weight), options)
          .add_service(sleeper(
              []() -> Duration { return 1ms; },
              {.strategy = "WeightedRoundRobin", .strategy_options = Value{{"weightKey", "size.weight"}}}));
    }
    mesh.start();
    for (const auto& [node, count] : answers(mesh, a, 60)) {
      CHECK(std::abs(count - 10 * (node.back() - '0')) <= 1);
    }
  }

  TEST_CASE("slow start: who joins later gets little at first, and its share when it is warm") {
    SimMesh mesh;
    Broker& a = mesh.add("a", caller("WeightedRandom", {{"slowStart", 10}}));
    for (const char* id : {"b", "c"}) mesh.add(id).add_service(sleeper([]() -> Duration { return 1ms; }));
    mesh.start();
    mesh.run_for(20s);
    mesh.add("d").add_service(sleeper([]() -> Duration { return 1ms; }));
    mesh.start("d");
    CHECK(answers(mesh, a, 300)["d"] < 40);
    mesh.run_for(10s);
    CHECK(answers(mesh, a, 300)["d"] > 70);
    mesh.crash("d");  // And again when it has started again.
    REQUIRE(mesh.until([&] { return !mesh.sees("a", "d"); }));
    mesh.add("d").add_service(sleeper([]() -> Duration { return 1ms; }));
    mesh.start("d");
    CHECK(answers(mesh, a, 300)["d"] < 40);
  }
}

}  // namespace weft
