// Nodes that hang, requests that reach nobody, and a bus that is lost: what becomes of the calls.

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;
using Carrier = SimMesh::Carrier;

namespace {

// Three nodes, of which b and c serve.
struct Trio {
  explicit Trio(Carrier carrier) : mesh(carrier) {
    for (const char* id : {"a", "b", "c"}) mesh.add(id);
    for (const char* id : {"b", "c"}) {
      mesh[id].add_service(echo());
      mesh[id].add_service(make_service("safe", [](Service& s) {
        s.action("whoami", [](Context& c) { return c.broker().node_id(); }, {.idempotent = true});
      }));
    }
    mesh.start();
  }
  [[nodiscard]] Broker& a() { return mesh["a"]; }
  SimMesh mesh;
};

}  // namespace

TEST_SUITE("lost and hung nodes") {
  TEST_CASE("a request that reached nobody was no try: another node gets it, without retries") {
    Trio trio(Carrier::kBus);
    trio.mesh.crash("b");
    trio.mesh.run_for(50ms);  // The bus knows, the nodes do not.
    REQUIRE(trio.mesh.sees("a", "b"));
    for (int i = 0; i < 10; ++i) CHECK(trio.mesh.await(trio.a().call("echo.whoami")).str() == "c");
    CHECK_FALSE(trio.mesh.sees("a", "b"));
    const Error error = trio.mesh.await(trio.a().try_call("echo.whoami", {}, {.node = "b"})).error();
    CHECK(error.code() == 404);
  }

  TEST_CASE("when the bus is lost, what is in flight is decided at once and not left to hang") {
    Trio trio(Carrier::kBus);
    auto call = trio.a().try_call("echo.sleep", {{"ms", 60000}});
    trio.mesh.run_for(100ms);
    const Duration before = trio.mesh.elapsed();
    trio.mesh.bus->stop();
    const Error error = trio.mesh.await(std::move(call)).error();
    CHECK(error.error_class() == ErrorClass::kRequestRejected);
    CHECK(trio.mesh.elapsed() - before < 1s);
    // With retries it is tried until the bus is back.
    trio.mesh.bus->start();
    trio.mesh.run_for(5s);
    auto patient = trio.a().try_call("echo.sleep", {{"ms", 1000}}, {.retries = 10});
    trio.mesh.run_for(100ms);
    trio.mesh.bus->stop();
    trio.mesh.run_for(500ms);
    trio.mesh.bus->start();
    CHECK(trio.mesh.await(std::move(patient)).ok());
  }

  TEST_CASE("a frozen node is out of rotation everywhere in 2.5 s, and back without a flap") {
    for (const Carrier carrier : {Carrier::kBus, Carrier::kTcp}) {
      CAPTURE(static_cast<int>(carrier));
      Trio trio(carrier);
      trio.mesh.run_for(10s);
      Internal of_a(trio.a()), of_c(trio.mesh["c"]);
      trio.mesh.process("b").freeze();
      REQUIRE(
          trio.mesh.until([&] { return !trio.mesh.sees("a", "b") && !trio.mesh.sees("c", "b"); }, 2500ms));
      trio.mesh.run_for(20s);
      trio.mesh.process("b").thaw();
      REQUIRE(trio.mesh.until([&] { return trio.mesh.sees("a", "b") && trio.mesh.sees("c", "b"); }, 1s));
      trio.mesh.run_for(10s);
      for (Internal* internal : {&of_a, &of_c}) {
        CHECK(internal->count("$node.disconnected b unexpected=true") +
                  internal->count("$node.disconnected b unexpected=false") ==
              1);
        CHECK(internal->count("$node.connected b reconnected=true") == 1);
      }
      for (const char* other : {"a", "c"}) CHECK(trio.mesh.sees("b", other));
    }
  }

  TEST_CASE("calls to a frozen node: moved if they may be, else answered when it thaws, or lost with it") {
    for (const Carrier carrier : {Carrier::kBus, Carrier::kTcp}) {
      CAPTURE(static_cast<int>(carrier));
      for (const char* fate : {"thaws", "stays", "dies"}) {
        CAPTURE(fate);
        Trio trio(carrier);
        trio.mesh.process("b").freeze();
        const Duration begun = trio.mesh.elapsed();
        auto waits = trio.a().try_call("echo.whoami", {}, {.node = "b"});
        for (int i = 0; i < 2; ++i) CHECK(trio.mesh.await(trio.a().call("safe.whoami")).str() == "c");
        CHECK(trio.mesh.elapsed() - begun < 2500ms);
        REQUIRE(trio.mesh.until([&] { return !trio.mesh.sees("a", "b"); }, 2500ms));
        if (fate == std::string_view("thaws")) {
          trio.mesh.process("b").thaw();
          const auto answer = trio.mesh.await(std::move(waits));
          REQUIRE(answer.ok());
          CHECK(answer->str() == "b");
          continue;
        }
        const Duration before = trio.mesh.elapsed();
        if (fate == std::string_view("dies")) trio.mesh.crash("b");
        const auto answer = trio.mesh.await(std::move(waits));
        REQUIRE_FALSE(answer.ok());
        CHECK(answer.error().error_class() == ErrorClass::kRequestRejected);
        CHECK(trio.mesh.elapsed() - before < (fate == std::string_view("dies") ? 500ms : 11s));
      }
    }
  }
}

}  // namespace weft
