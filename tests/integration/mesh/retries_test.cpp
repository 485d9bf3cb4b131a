#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;
using Carrier = SimMesh::Carrier;

TEST_SUITE("retries and lost nodes") {
  TEST_CASE("how often a failing action runs: only the caller retries, and only what may be retried") {
    struct Row {
      const char* what;
      int policy;  // On both nodes; negative: off.
      std::optional<int> retries;
      ErrorClass error_class;
      int runs;
    };
    const Row rows[] = {
        {"policy 3", 3, std::nullopt, ErrorClass::kRetryable, 4},
        {"policy 5, retries 0", 5, 0, ErrorClass::kRetryable, 1},
        {"policy 5, retries 1", 5, 1, ErrorClass::kRetryable, 2},
        {"no policy", -1, std::nullopt, ErrorClass::kRetryable, 1},
        {"no policy, retries 2", -1, 2, ErrorClass::kRetryable, 3},
        {"not retryable", 5, std::nullopt, ErrorClass::kClient, 1},
        {"not retryable, retries 3", -1, 3, ErrorClass::kBase, 1},
    };
    for (const bool remote : {false, true}) {
      for (const Row& row : rows) {
        CAPTURE(remote);
        CAPTURE(row.what);
        BrokerOptions options;
        options.retry = {.enabled = row.policy >= 0, .retries = std::max(row.policy, 0), .delay = 20ms};
        SimMesh mesh;
        Broker& a = mesh.add("a", options);
        Runs runs;
        (remote ? mesh.add("b", options) : a).add_service(failing(runs, row.error_class));
        mesh.start();
        CallOptions call_options;
        call_options.retries = row.retries;
        const auto result = mesh.await(a.try_call("failing.run", {}, call_options));
        CHECK(result.error().message() == "failed");
        mesh.run_for(10s);
        CHECK(runs.count == row.runs);
      }
    }
  }

  TEST_CASE("every try has the params and the request id of the first one") {
    for (const bool remote : {false, true}) {
      SimMesh mesh;
      Broker& a = mesh.add("a");
      std::vector<std::string> tries;
      std::set<std::string> request_ids;
      (remote ? mesh.add("b") : a).add_service(make_service("flaky", [&](Service& s) {
        s.action("run", [&](Context& c, const Pair& p) {
          tries.push_back(p.b + std::to_string(p.a));
          request_ids.insert(std::string(c.request_id()));
          if (tries.size() < 3) throw RetryableError("not yet");
          return p.a;
        });
      }));
      mesh.start();
      auto call = [&] {
        const Pair params{7,
                          "a text that does not fit into the string itself"};  // Gone before the second try.
        return a.call<std::int64_t>("flaky.run", params, {.retries = 5});
      }();
      CHECK(mesh.await(std::move(call)) == 7);
      CHECK(tries == std::vector<std::string>(3, "a text that does not fit into the string itself7"));
      CHECK(request_ids.size() == 1);
    }
  }

  TEST_CASE("a call that is retried keeps to the caller's time") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Runs runs;
    a.add_service(failing(runs));
    a.add_service(front());
    a.add_service(make_service("retrying", [](Service& s) {
      s.action("run", [](Context& c) -> Task<Value> {
        co_return co_await c.call("failing.run", {}, {.retries = 1000});
      });
    }));
    mesh.start();
    const Duration before = mesh.elapsed();
    const auto result = mesh.await(a.try_call("retrying.run", {}, {.timeout = 2s}));
    CHECK_FALSE(result.ok());
    CHECK(mesh.elapsed() - before <= 2s);
    const int so_far = runs.count;
    CHECK(so_far > 2);
    mesh.run_for(1min);
    CHECK(runs.count == so_far);
  }

  TEST_CASE("calls in flight to a node that dies are decided at once") {
    struct Row {
      const char* what;
      std::optional<int> retries;
      bool idempotent;
      bool direct;
      bool succeeds;
    };
    const Row rows[] = {
        {"no retries", std::nullopt, false, false, false},
        {"retries 1", 1, false, false, true},
        {"idempotent", std::nullopt, true, false, true},
        {"idempotent, but only there", std::nullopt, true, true, false},
    };
    for (const Carrier carrier : {Carrier::kMemory, Carrier::kBus, Carrier::kTcp}) {
      for (const Row& row : rows) {
        CAPTURE(static_cast<int>(carrier));
        CAPTURE(row.what);
        SimMesh mesh(carrier);
        Broker& a = mesh.add("a");
        const auto work = [&] {
          return make_service("work", [&](Service& s) {
            ActionOptions options;
            options.idempotent = row.idempotent;
            s.action(
                "run",
                [](Context& c) -> Task<std::string> {
                  co_await c.broker().sleep(5s);
                  co_return c.broker().node_id();
                },
                options);
          });
        };
        mesh.add("b").add_service(work());
        mesh.start();
        CallOptions options;
        options.retries = row.retries;
        if (row.direct) options.node = "b";
        auto call = a.try_call<std::string>("work.run", {}, options);
        mesh.run_for(1s);
        mesh.add("c").add_service(work());
        mesh.start();
        CHECK(a.pending_requests() == 1);
        const Duration before = mesh.elapsed();
        mesh.crash("b");
        const auto result = mesh.await(std::move(call));
        const double took = to_ms(mesh.elapsed() - before);
        CHECK(a.pending_requests() == 0);
        if (row.succeeds) {
          REQUIRE(result.ok());
          CHECK(*result == "c");
          CHECK(took < 5000 + 150);
          continue;
        }
        REQUIRE_FALSE(result.ok());
        CHECK(took < 150);
        CHECK(result.error().error_class() == ErrorClass::kRequestRejected);
        CHECK(result.error().code() == 503);
        CHECK(result.error().retryable());
        CHECK(to_json(result.error().data()) == R"({"action":"work.run","nodeID":"b"})");
      }
    }
  }

  TEST_CASE("calls in flight to a node that comes back as another process are decided when that is heard") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.announce(5, arr(test::service_info("p", {"act"})), "first");
    REQUIRE(mesh.until([&] { return mesh.sees("a", "p"); }));
    auto call = a.try_call("p.act");
    mesh.run_for(10ms);
    CHECK(peer.count(PacketType::kRequest) == 1);
    peer.announce(1, arr(test::service_info("p", {"act"})), "second");
    const auto result = mesh.await(std::move(call), 1s);
    CHECK(result.error().error_class() == ErrorClass::kRequestRejected);
  }

  TEST_CASE("no more requests wait for answers than pending_requests_max") {
    SimMesh mesh;
    Broker& a = mesh.add("a", {.transit = {.pending_requests_max = 2}});
    mesh.add("b").add_service(echo());
    mesh.start();
    auto first = a.call("echo.sleep", {{"ms", 100}});
    auto second = a.call("echo.sleep", {{"ms", 100}});
    const auto third = mesh.await(a.try_call("echo.whoami"));
    CHECK(third.error().error_class() == ErrorClass::kQueueIsFull);
    CHECK(to_json(third.error().data()) == R"({"action":"echo.whoami","nodeID":"b","size":2,"limit":2})");
    CHECK(third.error().retryable());
    CHECK(mesh.await(std::move(first)).i64() == 1);
    CHECK(mesh.await(std::move(second)).i64() == 1);
    CHECK(mesh.await(a.call<std::string>("echo.whoami")) == "b");
  }
}

}  // namespace weft
