#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;

namespace {

// "long.run" goes on until it is told to stop; notes when that was.
struct LongRunner {
  int begun = 0;
  int ended = 0;
  std::optional<Duration> stopped_at;
  std::optional<Duration> heard_at;  // By a callback of the token's.

  std::shared_ptr<Service> service(SimMesh& mesh, ActionOptions options = {}) {
    return make_service("long", [this, &mesh, options](Service& s) {
      s.action(
          "run",
          [this, &mesh](Context& c) -> Task<int> {
            ++begun;
            const std::stop_callback callback(c.stop_token(), [this, &mesh] { heard_at = mesh.elapsed(); });
            for (int i = 0; i < 100'000 && !c.stop_requested(); ++i) co_await c.broker().sleep(1ms);
            if (c.stop_requested()) stopped_at = mesh.elapsed();
            ++ended;
            co_return 1;
          },
          options);
    });
  }
};

// "work.run" answers with its node after `pause`, by the node's own count of runs.
struct Paced {
  Duration pause = 1ms;
  int runs = 0;
  int stopped = 0;
  std::optional<Error> fails;

  std::shared_ptr<Service> service() {
    return make_service("work", [this](Service& s) {
      s.action("run", [this](Context& c) -> Task<std::string> {
        ++runs;
        const std::stop_callback callback(c.stop_token(), [this] { ++stopped; });
        co_await c.broker().sleep(pause);
        if (fails) fails->raise();
        co_return c.broker().node_id();
      });
    });
  }
};

// The node "b" as long as it is there.
struct BFirst final : Strategy {
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection&) override {
    for (const Endpoint* endpoint : endpoints) {
      if (endpoint->node->id == "b") return endpoint;
    }
    return endpoints.front();
  }
};

BrokerOptions b_first() {
  BrokerOptions options;
  options.strategies["BFirst"] = [](const StrategyContext&) -> Result<std::unique_ptr<Strategy>> {
    return std::unique_ptr<Strategy>(std::make_unique<BFirst>());
  };
  options.registry.strategy = "BFirst";
  return options;
}

CallOptions keyed(std::string_view key) {
  CallOptions options;
  options.idempotency_key = key;
  return options;
}

}  // namespace

TEST_SUITE("cancellation") {
  TEST_CASE("a call that times out tells its handler, here and on another node") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a");
      LongRunner runner;
      (remote ? mesh.add("b") : a).add_service(runner.service(mesh));
      mesh.start();
      const Duration before = mesh.elapsed();
      CHECK(mesh.await(a.try_call("long.run", {}, {.timeout = 100ms})).error().code() == 504);
      mesh.run_for(50ms);
      CHECK(runner.ended == 1);
      REQUIRE(runner.stopped_at.has_value());
      REQUIRE(runner.heard_at.has_value());
      CHECK(to_ms(*runner.heard_at - before) >= 100);
      CHECK(to_ms(*runner.stopped_at - before) < 115);
    }
  }

  TEST_CASE("a handler whose caller's node is lost is told") {
    SimMesh mesh;
    mesh.add("a");
    Broker& b = mesh.add("b");
    LongRunner of_a;
    LongRunner own;
    b.add_service(of_a.service(mesh));
    b.add_service(make_service("own", [&](Service& s) {
      s.action("run", [&](Context& c) -> Task<void> {
        for (int i = 0; i < 100 && !c.stop_requested(); ++i) co_await c.broker().sleep(10ms);
        own.ended += c.stop_requested() ? 0 : 1;
      });
    }));
    mesh.start();
    auto call = mesh["a"].try_call("long.run");
    auto mine = b.try_call("own.run");
    REQUIRE(mesh.until([&] { return of_a.begun == 1; }, 1s));
    mesh.crash("a");
    REQUIRE(mesh.until([&] { return of_a.ended == 1; }));
    CHECK(of_a.stopped_at.has_value());
    CHECK(mesh.await(std::move(mine)).ok());
    CHECK(own.ended == 1);  // Nobody else's call is touched.
  }

  TEST_CASE("a node that stops waits for its handlers, then tells those that still run, and ends") {
    for (const bool tracking : {true, false}) {
      CAPTURE(tracking);
      SimMesh mesh;
      BrokerOptions options;
      options.tracking = {.enabled = tracking, .shutdown_timeout = 1s};
      Broker& a = mesh.add("a", options);
      LongRunner runner;
      a.add_service(runner.service(mesh));
      mesh.start();
      auto call = a.try_call("long.run");
      mesh.run_for(10ms);
      const Duration before = mesh.elapsed();
      mesh.await(a.stop());
      const double took = to_ms(mesh.elapsed() - before);
      CHECK(runner.ended == 1);
      REQUIRE(runner.stopped_at.has_value());
      CHECK(took >= (tracking ? 1000 : 0));
      CHECK(took < (tracking ? 1000 : 0) + 300);
    }
  }

  TEST_CASE("a handler on the worker pool is told as well") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    // Its own life, beyond the run's: a worker in the simulation is through before time goes on.
    std::optional<std::stop_callback<std::function<void()>>> callback;
    bool fired = false;
    ActionOptions options;
    options.blocking = true;
    a.add_service(make_service("pool", [&](Service& s) {
      s.action(
          "run",
          [&](Context& c) -> Task<void> {
            callback.emplace(c.stop_token(), [&fired] { fired = true; });
            return [](Context& waiting) -> Task<void> { co_await waiting.broker().sleep(1min); }(c);
          },
          options);
    }));
    mesh.start();
    CHECK(mesh.await(a.try_call("pool.run", {}, {.timeout = 1s})).error().code() == 504);
    CHECK(fired);
  }

  TEST_CASE("who asks after the fact finds the token fired") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    bool fired = false;
    a.add_service(make_service("late", [&](Service& s) {
      s.action("run", [&](Context& c) -> Task<void> {
        co_await c.broker().sleep(100ms);
        fired = c.stop_token().stop_requested();
      });
    }));
    mesh.start();
    (void)mesh.await(a.try_call("late.run", {}, {.timeout = 10ms}));
    mesh.run_for(1s);
    CHECK(fired);
  }
}

TEST_SUITE("hedged calls") {
  TEST_CASE("a slow call is made a second time, of another node, and the first answer counts") {
    SimMesh mesh;
    Broker& a = mesh.add("a", b_first());
    std::map<std::string, Paced> nodes;
    for (const char* id : {"b", "c"}) mesh.add(id).add_service(nodes[id].service());
    mesh.start();
    nodes["b"].pause = 10s;
    for (int i = 0; i < 5; ++i) {
      const Duration before = mesh.elapsed();
      std::string node;
      CHECK(mesh.await(a.call<std::string>("work.run", {}, {.hedge_after = 50ms, .response_node = &node})) ==
            "c");
      CHECK(node == "c");
      CHECK(to_ms(mesh.elapsed() - before) >= 50);
      CHECK(to_ms(mesh.elapsed() - before) < 70);
    }
    CHECK(nodes["b"].runs == 5);
    CHECK(nodes["c"].runs == 5);
    CHECK(a.pending_requests() == 0);
  }

  TEST_CASE("fast calls are not hedged; the loser's failure is passed over; if both fail, so does the call") {
    const auto hedged = [](SimMesh& mesh, Paced b, Paced c) {
      Broker& a = mesh.add("a", b_first());
      auto nodes = std::make_shared<std::pair<Paced, Paced>>(std::move(b), std::move(c));
      mesh.add("b").add_service(nodes->first.service());
      mesh.add("c").add_service(nodes->second.service());
      mesh.start();
      const auto result = mesh.await(a.try_call<std::string>("work.run", {}, {.hedge_after = 50ms}));
      mesh.run_for(1s);
      CHECK(a.pending_requests() == 0);
      return (result ? *result : result.error().message()) + " " + std::to_string(nodes->first.runs) +
             std::to_string(nodes->second.runs);
    };
    const Error broken(ErrorClass::kServer, "broken");
    const auto paced = [](Duration pause, std::optional<Error> fails = {}) {
      Paced node;
      node.pause = pause;
      node.fails = std::move(fails);
      return node;
    };
    struct Row {
      Paced b;
      Paced c;
      std::string outcome;  // And how often each ran.
    };
    const Row rows[] = {
        {paced(10ms), paced(10ms), "b 10"},
        {paced(10ms, broken), paced(10ms), "broken 10"},
        {paced(80ms), paced(1ms, broken), "b 11"},
        {paced(80ms, broken), paced(200ms), "c 11"},
        {paced(200ms, broken), paced(10ms), "c 11"},
        {paced(80ms, broken), paced(200ms, broken), "broken 11"},
        {paced(200ms, broken), paced(1ms, broken), "broken 11"},
    };
    for (const Row& row : rows) {
      SimMesh mesh;
      CHECK(hedged(mesh, row.b, row.c) == row.outcome);
    }
  }

  TEST_CASE("a handler of this node that lost the race is told, and the call keeps to its time") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Paced here;
    Paced there;
    here.pause = 10s;
    a.add_service(here.service());
    mesh.add("b").add_service(there.service());
    mesh.start();
    CHECK(mesh.await(a.call<std::string>("work.run", {}, {.timeout = 1s, .hedge_after = 20ms})) == "b");
    CHECK(here.stopped == 1);
    there.pause = 10s;
    const Duration before = mesh.elapsed();
    const auto late = mesh.await(a.try_call("work.run", {}, {.timeout = 1s, .hedge_after = 20ms}));
    CHECK(late.error().code() == 504);
    CHECK(to_ms(mesh.elapsed() - before) == 1000);
    CHECK(there.runs == 2);
    CHECK(a.pending_requests() == 0);
  }

  TEST_CASE("hedges have a budget: slow everywhere does not mean twice the load") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    std::map<std::string, Paced> nodes;
    for (const char* id : {"b", "c"}) {
      nodes[id].pause = 100ms;
      mesh.add(id).add_service(nodes[id].service());
    }
    mesh.start();
    constexpr int kCalls = 500;
    std::vector<TryCall<Value>> calls;
    for (int i = 0; i < kCalls; ++i) {
      calls.push_back(a.try_call("work.run", {}, {.hedge_after = 10ms}));
      mesh.run_for(1ms);
    }
    for (auto& call : calls) CHECK(mesh.await(std::move(call)).ok());
    const int runs = nodes["b"].runs + nodes["c"].runs;
    CHECK(runs > kCalls + 20);
    CHECK(runs <= kCalls + kCalls / 10 + 10);
  }

  TEST_CASE("by a quantile, the pause is what calls usually take") {
    SimMesh mesh;
    Broker& a = mesh.add("a", b_first());
    std::map<std::string, Paced> nodes;
    for (const char* id : {"b", "c"}) {
      nodes[id].pause = 20ms;
      mesh.add(id).add_service(nodes[id].service());
    }
    mesh.start();
    CallOptions options;
    options.hedge_quantile = 0.9;
    for (int i = 0; i < 100; ++i) CHECK(mesh.await(a.try_call("work.run", {}, options)).ok());
    CHECK(nodes["c"].runs <= 10);
    nodes["b"].pause = 5s;
    for (int i = 0; i < 4; ++i) {
      const Duration before = mesh.elapsed();
      CHECK(mesh.await(a.call<std::string>("work.run", {}, options)) == "c");
      CHECK(to_ms(mesh.elapsed() - before) < 80);
    }
  }
}

TEST_SUITE("idempotency keys") {
  TEST_CASE("a repeated key is answered with the first result, also while the first one runs") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a");
      int runs = 0;
      (remote ? mesh.add("b") : a).add_service(make_service("pay", [&](Service& s) {
        s.action("plain", [&](Context& c) {
          c.meta()["seen"] = ++runs;
          return Value{{"run", runs}, {"sum", c.params.value()["sum"]}};
        });
        s.action("later", [&](Context& c) -> Task<int> {
          const int run = ++runs;
          co_await c.broker().sleep(20ms);
          co_return run;
        });
      }));
      mesh.start();
      Value meta;
      CallOptions options = keyed("k-1");
      options.response_meta = &meta;
      for (int i = 0; i < 3; ++i) {
        CHECK(to_json(mesh.await(a.call("pay.plain", {{"sum", 5 + i}}, options))) == R"({"run":1,"sum":5})");
        CHECK(meta["seen"].i64() == 1);
      }
      CHECK(mesh.await(a.call("pay.plain", {}, keyed("k-2")))["run"].i64() == 2);
      CHECK(mesh.await(a.call("pay.plain"))["run"].i64() == 3);
      auto first = a.call<int>("pay.later", {}, keyed("k-1"));  // Another action: another call.
      mesh.run_for(5ms);
      auto second = a.call<int>("pay.later", {}, keyed("k-1"));
      CHECK(mesh.await(std::move(second)) == 4);
      CHECK(mesh.await(std::move(first)) == 4);
      CHECK(runs == 4);
      // After its time the key is as good as new.
      mesh.run_for(6min);
      CHECK(mesh.await(a.call("pay.plain", {}, keyed("k-1")))["run"].i64() == 5);
    }
  }

  TEST_CASE("final failures are remembered, failures that may be tried again are not") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a");
      int runs = 0;
      (remote ? mesh.add("b") : a).add_service(make_service("pay", [&](Service& s) {
        s.action("refuse", [&](Context&) {
          ++runs;
          throw ClientError("no money", 402, "BROKE", Value{{"run", runs}});
        });
        s.action("shaky", [&](Context&) {
          if (++runs < 3) throw ServerError("not yet");
          return runs;
        });
      }));
      mesh.start();
      for (int i = 0; i < 3; ++i) {
        const auto result = mesh.await(a.try_call("pay.refuse", {}, keyed("k")));
        CHECK(result.error().code() == 402);
        CHECK(result.error().data()["run"].i64() == 1);
      }
      runs = 0;
      CallOptions options = keyed("k");
      options.retries = 5;
      CHECK(mesh.await(a.call<int>("pay.shaky", {}, options)) == 3);
      CHECK(mesh.await(a.call<int>("pay.shaky", {}, options)) == 3);
      CHECK(runs == 3);
    }
  }

  TEST_CASE("a call that timed out finds its result when it asks again") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Paced worker;
    worker.pause = 200ms;
    mesh.add("b").add_service(worker.service());
    mesh.start();
    CallOptions options = keyed("k");
    options.timeout = 100ms;
    CHECK(mesh.await(a.try_call("work.run", {}, options)).error().code() == 504);
    mesh.run_for(200ms);
    const Duration before = mesh.elapsed();
    CHECK(mesh.await(a.call<std::string>("work.run", {}, options)) == "b");
    CHECK(to_ms(mesh.elapsed() - before) < 20);
    CHECK(worker.runs == 1);
  }
}

}  // namespace weft
