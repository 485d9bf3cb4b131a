#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;

namespace {

// "work.run" of each node: counts its runs, and does what it is told to.
struct Worker {
  enum class Mode { kAnswer, kFail, kRefuse, kHang };
  Mode mode = Mode::kAnswer;
  int runs = 0;

  std::shared_ptr<Service> service(ActionOptions options = {}) {
    return make_service("work", [this, options](Service& s) {
      s.action(
          "run",
          [this](Context& c) -> Task<std::string> {
            ++runs;
            co_await c.broker().sleep(mode == Mode::kHang ? Duration(1h) : Duration(5ms));
            if (mode == Mode::kFail) throw ServerError("broken");
            if (mode == Mode::kRefuse) throw ClientError("no", 422);
            co_return c.broker().node_id();
          },
          options);
    });
  }
};

BrokerOptions with_breaker(std::size_t min_request_count = 5) {
  BrokerOptions options;
  options.circuit_breaker = {.enabled = true,
                             .threshold = 0.5,
                             .window = 60s,
                             .min_request_count = min_request_count,
                             .half_open_time = 1s};
  return options;
}

// Node → whether it may be chosen, as `$node.actions` says.
std::map<std::string, bool> endpoint_states(SimMesh& mesh, Broker& broker, std::string_view action) {
  const Value rows = mesh.await(broker.call("$node.actions", {{"withEndpoints", true}}));
  std::map<std::string, bool> states;
  for (const Value& row : rows.items()) {
    if (row["name"].str() != action) continue;
    for (const Value& endpoint : row["endpoints"].items())
      states[std::string(endpoint["nodeID"].str())] = endpoint["state"].boolean();
  }
  return states;
}
using States = std::map<std::string, bool>;

void throw_after(int& runs) {
  ++runs;
  throw ServerError("shaky", 503);
}

// Payloads of the guards' events, in order.
struct GuardEvents {
  explicit GuardEvents(Broker& broker)
      : breaker(broker.on_local(
            "$circuit-breaker.*",
            [this](std::string_view event, const Value& payload) { seen.emplace_back(event, payload); })),
        outlier(broker.on_local("$outlier.*", [this](std::string_view event, const Value& payload) {
          seen.emplace_back(event, payload);
        })) {}
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& one : seen) list.push_back(one.first);
    return list;
  }
  std::vector<std::pair<std::string, Value>> seen;
  LocalListener breaker;
  LocalListener outlier;
};

}  // namespace

TEST_SUITE("circuit breaker in a mesh") {
  TEST_CASE("field case 8.3: a time-out counts as a failure for the circuit breaker") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a", with_breaker());
      Worker worker{Worker::Mode::kHang};
      (remote ? mesh.add("b") : a).add_service(worker.service());
      mesh.start();
      for (int i = 0; i < 5; ++i) {
        const auto result = mesh.await(a.try_call("work.run", {}, {.timeout = 100ms}));
        CHECK(result.error().code() == 504);
      }
      const Duration before = mesh.elapsed();
      const auto refused_now = mesh.await(a.try_call("work.run", {}, {.timeout = 100ms}));
      CHECK(refused_now.error().error_class() == ErrorClass::kServiceNotAvailable);
      CHECK(refused_now.error().code() == 404);
      CHECK(refused_now.error().type() == "SERVICE_NOT_AVAILABLE");
      CHECK(mesh.elapsed() == before);
      CHECK(worker.runs == 5);
    }
  }

  TEST_CASE("field case 8.4: half-open lets exactly one call through") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a", with_breaker());
      Worker worker{Worker::Mode::kFail};
      (remote ? mesh.add("b") : a).add_service(worker.service());
      mesh.start();
      const auto ten = [&] {
        std::vector<TryCall<std::string>> calls;
        for (int i = 0; i < 10; ++i) calls.push_back(a.try_call<std::string>("work.run"));
        int ok = 0;
        int unavailable = 0;
        for (auto& call : calls) {
          const auto result = mesh.await(std::move(call));
          ok += result.ok() ? 1 : 0;
          unavailable += !result.ok() && result.error().type() == "SERVICE_NOT_AVAILABLE" ? 1 : 0;
        }
        return std::pair(ok, unavailable);
      };
      (void)ten();
      CHECK(ten() == std::pair(0, 10));
      mesh.run_for(1s);
      worker.runs = 0;
      (void)ten();  // The probe fails: open for another period.
      CHECK(worker.runs == 1);
      CHECK(ten() == std::pair(0, 10));
      mesh.run_for(1s);
      worker.mode = Worker::Mode::kAnswer;
      worker.runs = 0;
      CHECK(ten() == std::pair(1, 9));
      CHECK(worker.runs == 1);
      CHECK(ten() == std::pair(10, 0));
    }
  }

  TEST_CASE(
      "the breaker is one endpoint's: other nodes keep serving, events tell the numbers, $node shows it") {
    SimMesh mesh;
    Broker& a = mesh.add("a", with_breaker());
    Worker bad{Worker::Mode::kFail};
    Worker good;
    mesh.add("b").add_service(bad.service());
    mesh.add("c").add_service(good.service());
    mesh.start();
    GuardEvents events(a);
    int failed = 0;
    for (int i = 0; i < 40; ++i) failed += mesh.await(a.try_call("work.run")).ok() ? 0 : 1;
    CHECK(failed == 5);
    CHECK(bad.runs == 5);
    CHECK(good.runs == 35);
    REQUIRE(events.seen.size() == 1);
    CHECK(events.seen[0].first == "$circuit-breaker.opened");
    CHECK(to_json(events.seen[0].second) ==
          R"({"nodeID":"b","service":"work","action":"work.run","failures":5,"count":5,"rate":1})");
    CHECK(endpoint_states(mesh, a, "work.run") == States{{"b", false}, {"c", true}});
    bad.mode = Worker::Mode::kAnswer;
    REQUIRE(mesh.until([&] { return events.seen.size() == 2; }, 2s));
    CHECK(endpoint_states(mesh, a, "work.run") == States{{"b", true}, {"c", true}});
    for (int i = 0; i < 4; ++i) CHECK(mesh.await(a.try_call("work.run")).ok());
    CHECK(events.names() == std::vector<std::string>{"$circuit-breaker.opened",
                                                     "$circuit-breaker.half-opened",
                                                     "$circuit-breaker.closed"});
    CHECK(to_json(events.seen[2].second) == R"({"nodeID":"b","service":"work","action":"work.run"})");
  }

  TEST_CASE("a probe that hangs is given up after half_open_time, and the next one decides") {
    SimMesh mesh;
    Broker& a = mesh.add("a", with_breaker());
    Worker worker{Worker::Mode::kFail};
    mesh.add("b").add_service(worker.service());
    mesh.start();
    GuardEvents events(a);
    for (int i = 0; i < 5; ++i) (void)mesh.await(a.try_call("work.run"));
    worker.mode = Worker::Mode::kHang;
    mesh.run_for(1s);
    auto stuck = a.try_call("work.run");
    mesh.run_for(10ms);
    CHECK(refused(mesh, a, "work.run").type() == "SERVICE_NOT_AVAILABLE");
    worker.mode = Worker::Mode::kAnswer;
    mesh.run_for(1s);
    CHECK(mesh.await(a.try_call("work.run")).ok());
    CHECK(events.names() ==
          std::vector<std::string>{"$circuit-breaker.opened", "$circuit-breaker.half-opened",
                                   "$circuit-breaker.half-opened", "$circuit-breaker.closed"});
    CHECK(mesh.await(a.try_call("work.run")).ok());
  }

  TEST_CASE("refusals do not open it, and what counts may be decided by the user") {
    for (const bool counts : {false, true}) {
      SimMesh mesh;
      BrokerOptions options = with_breaker();
      if (counts) options.is_failure = [](const Error& error) { return error.code() == 422; };
      Broker& a = mesh.add("a", options);
      Worker worker{Worker::Mode::kRefuse};
      mesh.add("b").add_service(worker.service());
      mesh.start();
      for (int i = 0; i < 20; ++i) (void)mesh.await(a.try_call("work.run"));
      CHECK(worker.runs == (counts ? 5 : 20));
    }
  }

  TEST_CASE("an action brings its own breaker, which its callers apply") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Worker worker{Worker::Mode::kFail};
    ActionOptions options;
    options.circuit_breaker = CircuitBreakerPolicy{.enabled = true, .min_request_count = 2};
    mesh.add("b").add_service(worker.service(options));
    mesh.add("c", with_breaker(1)).add_service(make_service("x"));
    mesh.start();
    for (int i = 0; i < 5; ++i) (void)mesh.await(a.try_call("work.run"));
    CHECK(worker.runs == 2);
  }

  TEST_CASE("a call of exactly that node goes past an open breaker") {
    SimMesh mesh;
    Broker& a = mesh.add("a", with_breaker());
    Worker worker{Worker::Mode::kFail};
    mesh.add("b").add_service(worker.service());
    mesh.start();
    for (int i = 0; i < 5; ++i) (void)mesh.await(a.try_call("work.run"));
    worker.mode = Worker::Mode::kAnswer;
    CHECK(refused(mesh, a, "work.run").type() == "SERVICE_NOT_AVAILABLE");
    CHECK(mesh.await(a.try_call("work.run", {}, {.node = "b"})).ok());
    CHECK(refused(mesh, a, "work.run").type() == "SERVICE_NOT_AVAILABLE");
  }
}

TEST_SUITE("outlier ejection in a mesh") {
  TEST_CASE("an endpoint that fails where others do not is out for a while, longer each time") {
    SimMesh mesh;
    BrokerOptions options;
    options.outlier = {.enabled = true, .consecutive_failures = 3, .ejection_time = 1s};
    Broker& a = mesh.add("a", options);
    std::map<std::string, Worker> workers;
    for (const char* id : {"b", "c", "d", "e"}) mesh.add(id).add_service(workers[id].service());
    mesh.start();
    GuardEvents events(a);
    workers["c"].mode = Worker::Mode::kFail;
    const auto failures = [&](int calls) {
      int failed = 0;
      for (int i = 0; i < calls; ++i) failed += mesh.await(a.try_call("work.run")).ok() ? 0 : 1;
      return failed;
    };
    CHECK(failures(40) == 3);
    CHECK(endpoint_states(mesh, a, "work.run") ==
          States{{"b", true}, {"c", false}, {"d", true}, {"e", true}});
    REQUIRE(events.seen.size() == 1);
    CHECK(events.seen[0].first == "$outlier.ejected");
    CHECK(events.seen[0].second["nodeID"].str() == "c");
    CHECK(events.seen[0].second["consecutive"].i64() == 3);
    CHECK(events.seen[0].second["duration"].f64() == 1000);
    REQUIRE(mesh.until([&] { return events.seen.size() == 2; }, 2s));
    CHECK(events.seen[1].first == "$outlier.returned");
    CHECK(failures(40) == 3);
    REQUIRE(events.seen.size() == 3);
    CHECK(events.seen[2].second["duration"].f64() == 2000);
    CHECK(events.seen[2].second["times"].i64() == 2);
  }

  TEST_CASE("no more than the given share is out, however many fail; when all are out, all are tried") {
    for (const double percent : {50.0, 100.0}) {
      SimMesh mesh;
      BrokerOptions options;
      options.outlier = {
          .enabled = true, .consecutive_failures = 2, .ejection_time = 1min, .max_ejection_percent = percent};
      Broker& a = mesh.add("a", options);
      std::map<std::string, Worker> workers;
      for (const char* id : {"b", "c"}) {
        workers[id].mode = Worker::Mode::kFail;
        mesh.add(id).add_service(workers[id].service());
      }
      mesh.start();
      for (int i = 0; i < 20; ++i) CHECK(mesh.await(a.try_call("work.run")).error().message() == "broken");
      CHECK(workers["b"].runs + workers["c"].runs == 20);
      int in = 0;
      for (const auto& [node, state] : endpoint_states(mesh, a, "work.run")) in += state ? 1 : 0;
      CHECK(in == (percent < 100 ? 1 : 2));
    }
  }

  TEST_CASE("a caller that knows better reports what answers were worth") {
    SimMesh mesh;
    BrokerOptions options;
    options.outlier = {.enabled = true, .consecutive_failures = 3, .ejection_time = 1min};
    Broker& a = mesh.add("a", options);
    std::map<std::string, Worker> workers;
    for (const char* id : {"b", "c"}) mesh.add(id).add_service(workers[id].service());
    mesh.start();
    for (int i = 0; i < 3; ++i) a.report("work.run", "b", CallOutcome::kFailure);
    a.report("work.run", "nobody", CallOutcome::kFailure);
    a.report("no.such", "b", CallOutcome::kFailure);
    std::string node;
    for (int i = 0; i < 4; ++i) {
      CHECK(mesh.await(a.call<std::string>("work.run", {}, {.response_node = &node})) == "c");
      CHECK(node == "c");
    }
  }
}

TEST_SUITE("retries with limits") {
  TEST_CASE("a further try goes to another endpoint when there is one, even past prefer_local") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Worker bad{Worker::Mode::kFail};
    Worker good;
    a.add_service(bad.service());
    mesh.add("b").add_service(good.service());
    mesh.start();
    for (int i = 0; i < 5; ++i) CHECK(mesh.await(a.call<std::string>("work.run", {}, {.retries = 1})) == "b");
    CHECK(bad.runs == 5);
    CHECK(good.runs == 5);
  }

  TEST_CASE("when everything fails, further tries stay in proportion to the calls") {
    SimMesh mesh;
    BrokerOptions options;
    options.retry = {.enabled = true, .retries = 5, .delay = 1ms, .max_delay = 2ms};
    Broker& a = mesh.add("a", options);
    Runs runs;
    mesh.add("b").add_service(failing(runs));
    mesh.start();
    std::vector<TryCall<Value>> calls;
    for (int i = 0; i < 1000; ++i) calls.push_back(a.try_call("failing.run"));
    for (auto& call : calls) CHECK_FALSE(mesh.await(std::move(call)).ok());
    CHECK(runs.count >= 1000 + 90);  // The burst.
    CHECK(runs.count <= 1000 + 200 + 20);
  }

  TEST_CASE("an action brings its own retry policy; which failures are tried again the user may decide") {
    SimMesh mesh;
    BrokerOptions options;
    options.is_retryable = [](const Error& error) { return error.code() == 422; };
    Broker& a = mesh.add("a", options);
    Worker worker{Worker::Mode::kRefuse};
    ActionOptions action;
    action.retry = RetryPolicy{.enabled = true, .retries = 2, .delay = 1ms};
    mesh.add("b").add_service(worker.service(action));
    mesh.start();
    CHECK(mesh.await(a.try_call("work.run")).error().code() == 422);
    CHECK(worker.runs == 3);
    worker.mode = Worker::Mode::kFail;
    worker.runs = 0;
    CHECK(mesh.await(a.try_call("work.run")).error().message() == "broken");
    CHECK(worker.runs == 1);
    CHECK_FALSE(mesh.await(a.try_call("work.run", {}, {.retries = 0})).ok());
    CHECK(worker.runs == 2);
  }
}

TEST_SUITE("bulkhead in a mesh") {
  TEST_CASE("so many run at once, so many wait in order, the rest is refused with 429") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a");
      std::vector<std::int64_t> order;
      int at_once = 0;
      int most = 0;
      ActionOptions options;
      options.bulkhead = BulkheadPolicy{.enabled = true, .concurrency = 2, .queue_max = 3};
      (remote ? mesh.add("b") : a).add_service(make_service("narrow", [&](Service& s) {
        s.action(
            "run",
            [&](Context& c) -> Task<void> {
              order.push_back(c.params.value()["n"].i64());
              most = std::max(most, ++at_once);
              co_await c.broker().sleep(10ms);
              --at_once;
            },
            options);
      }));
      mesh.start();
      std::vector<TryCall<Value>> calls;
      for (int n = 1; n <= 8; ++n) calls.push_back(a.try_call("narrow.run", {{"n", n}}));
      std::string outcome;
      std::optional<Error> refusal;
      for (auto& call : calls) {
        const auto result = mesh.await(std::move(call));
        outcome += result.ok() ? "." : "x";
        if (!result) refusal = result.error();
      }
      CHECK(outcome == ".....xxx");
      CHECK(order == std::vector<std::int64_t>{1, 2, 3, 4, 5});
      CHECK(most == 2);
      REQUIRE(refusal.has_value());
      CHECK(refusal->error_class() == ErrorClass::kQueueIsFull);
      CHECK(refusal->code() == 429);
      CHECK(refusal->data()["action"].str() == "narrow.run");
      CHECK(refusal->data()["nodeID"].str() == (remote ? "b" : "a"));
      // When it is over there is room again, after failures as after successes.
      CHECK(mesh.await(a.try_call("narrow.run", {{"n", 9}})).ok());
    }
  }

  TEST_CASE("those whose caller has given up are dropped instead of run") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a");
      int runs = 0;
      ActionOptions options;
      options.bulkhead = BulkheadPolicy{.enabled = true, .concurrency = 1, .queue_max = 2};
      (remote ? mesh.add("b") : a).add_service(make_service("narrow", [&](Service& s) {
        s.action(
            "run",
            [&](Context& c) -> Task<void> {
              ++runs;
              co_await c.broker().sleep(200ms);
            },
            options);
      }));
      mesh.start();
      auto first = a.try_call("narrow.run");
      auto second = a.try_call("narrow.run", {}, {.timeout = 50ms});
      auto third = a.try_call("narrow.run", {}, {.timeout = 50ms});
      CHECK(mesh.await(std::move(second)).error().code() == 504);
      CHECK(mesh.await(std::move(third)).error().code() == 504);
      mesh.run_for(5ms);
      auto fourth = a.try_call("narrow.run");  // The places in the queue are free again.
      CHECK(mesh.await(std::move(first)).ok());
      CHECK(mesh.await(std::move(fourth)).ok());
      CHECK(runs == 2);
    }
  }

  TEST_CASE("field case 8.6: bulkhead on events refuses cleanly") {
    SimMesh mesh;
    BrokerOptions options;
    options.bulkhead = {.enabled = true, .concurrency = 1, .queue_max = 2};
    Broker& a = mesh.add("a", options);
    std::vector<std::int64_t> handled;
    a.add_service(make_service("mail", [&](Service& s) {
      s.event("user.created", [&](Context& c) -> Task<void> {
        co_await c.broker().sleep(10ms);
        handled.push_back(c.params.value()["n"].i64());
      });
    }));
    mesh.start();
    std::vector<Value> refusals;
    const LocalListener listener = a.on_local(
        "$broker.error", [&](std::string_view, const Value& payload) { refusals.push_back(payload); });
    for (int n = 1; n <= 5; ++n) a.emit("user.created", {{"n", n}});
    mesh.run_for(1s);
    CHECK(handled == std::vector<std::int64_t>{1, 2, 3});
    REQUIRE(refusals.size() == 2);
    for (const Value& refusal : refusals) {
      CHECK(refusal["type"].str() == "eventRefused");
      CHECK(refusal["code"].i64() == 429);
      CHECK(refusal["data"]["event"].str() == "user.created");
      CHECK(refusal["data"]["service"].str() == "mail");
      CHECK(refusal["data"]["nodeID"].str() == "a");
    }
    a.emit("user.created", {{"n", 6}});
    mesh.run_for(1s);
    CHECK(handled.size() == 4);
  }
}

TEST_SUITE("fallbacks") {
  TEST_CASE("a call's fallback is a value, however false, or a function of the failure; lookups included") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Runs runs;
    mesh.add("b").add_service(failing(runs));
    mesh.start();
    for (const Value& value : {Value(), Value(false), Value(0), Value(""), Value::array()}) {
      for (const char* action : {"failing.run", "no.such"}) {
        const auto result = mesh.await(a.try_call(action, {}, {.fallback = &value}));
        REQUIRE(result.ok());
        CHECK(*result == value);
      }
    }
    const std::function<Value(const Error&)> by_code = [](const Error& error) -> Value {
      if (error.code() == 404) throw ClientError("nothing to fall back on", 410);
      return Value{{"code", error.code()}};
    };
    CHECK(mesh.await(a.call("failing.run", {}, {.fallback_function = &by_code}))["code"].i64() == 500);
    const auto failed = mesh.await(a.try_call("no.such", {}, {.fallback_function = &by_code}));
    CHECK(failed.error().code() == 410);
  }

  TEST_CASE("an action's own fallback answers in the place of its handler, here and for other nodes") {
    for (const bool remote : {false, true}) {
      for (const bool plain : {false, true}) {
        CAPTURE(remote);
        CAPTURE(plain);
        SimMesh mesh;
        Broker& a = mesh.add("a");
        int runs = 0;
        ActionOptions options;
        options.fallback = [](Context& c, const Error& error) {
          return Value{{"code", error.code()}, {"n", c.params.value()["n"]}};
        };
        (remote ? mesh.add("b") : a).add_service(make_service("shaky", [&](Service& s) {
          if (plain) {
            s.action(
                "run", [&](Context&) { throw_after(runs); }, options);
          } else {
            s.action(
                "run",
                [&](Context& c) -> Task<void> {
                  co_await c.broker().sleep(c.params.value()["n"].i64() == 2 ? Duration(1min)
                                                                             : Duration(1ms));
                  throw_after(runs);
                },
                options);
          }
        }));
        mesh.start();
        CHECK(to_json(mesh.await(a.call("shaky.run", {{"n", 1}}))) == R"({"code":503,"n":1})");
        CHECK(runs == 1);
        // A local caller's further tries come first.
        CHECK(mesh.await(a.try_call("shaky.run", {{"n", 1}}, {.retries = 2})).ok());
        CHECK(runs == (remote ? 2 : 4));
        if (plain) continue;
        const auto late = mesh.await(a.try_call("shaky.run", {{"n", 2}}, {.timeout = 50ms}));
        if (!remote) CHECK(to_json(*late) == R"({"code":504,"n":2})");
      }
    }
  }
}

}  // namespace weft
