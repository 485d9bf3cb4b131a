// Brokers over TCP with the weave among them, in a simulated world.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;
using Carrier = SimMesh::Carrier;

namespace {

std::string name(int i) {
  return "n" + std::to_string(i);
}

void start(SimMesh& mesh, int count) {
  for (int i = 1; i <= count; ++i) mesh.add(name(i)).add_service(answering("s" + std::to_string(i)));
  mesh.start();
  mesh.run_for(3s);
}

// How many of n1 … n<count>, but `id` itself, hold it available.
int holders(const SimMesh& mesh, int count, const std::string& id) {
  int holders = 0;
  for (int i = 1; i <= count; ++i) holders += name(i) != id && mesh.sees(name(i), id) ? 1 : 0;
  return holders;
}

}  // namespace

TEST_SUITE("the weave among brokers") {
  TEST_CASE(
      "a process that hangs is out of use everywhere within 2.5 s, and back when it goes on, for good") {
    constexpr int kCount = 8;
    SimMesh mesh(Carrier::kTcp);
    start(mesh, kCount);
    mesh.process("n3").freeze();
    const Duration frozen = mesh.elapsed();
    REQUIRE(mesh.until([&] { return holders(mesh, kCount, "n3") == 0; }, 5s));
    CHECK(mesh.elapsed() - frozen <= 2500ms);
    CHECK(mesh.elapsed() - frozen >= 1400ms);
    mesh.run_for(3s);
    const Duration thawed = mesh.elapsed();
    mesh.process("n3").thaw();
    REQUIRE(mesh.until([&] { return holders(mesh, kCount, "n3") == kCount - 1; }, 5s));
    CHECK(mesh.elapsed() - thawed <= 2s);
    for (int i = 0; i < 200; ++i) {
      mesh.run_for(50ms);
      CHECK(holders(mesh, kCount, "n3") == kCount - 1);
    }
    for (int i = 1; i <= kCount; ++i) CHECK(holders(mesh, kCount, name(i)) == kCount - 1);
    CHECK(mesh.await(mesh["n1"].call("s3.get")).i64() == 1);
  }

  TEST_CASE("a process that dies is known to be dead everywhere within half a second") {
    constexpr int kCount = 12;
    SimMesh mesh(Carrier::kTcp);
    start(mesh, kCount);
    mesh.crash("n5");
    const Duration died = mesh.elapsed();
    const auto holders_left = [&] {
      int left = 0;
      for (int i = 1; i <= kCount; ++i) left += i != 5 && mesh.sees(name(i), "n5") ? 1 : 0;
      return left;
    };
    REQUIRE(mesh.until([&] { return holders_left() == 0; }, 5s));
    CHECK(mesh.elapsed() - died <= 500ms);
  }

  TEST_CASE("a service that is added is known everywhere within 150 ms") {
    constexpr int kCount = 12;
    SimMesh mesh(Carrier::kTcp);
    start(mesh, kCount);
    mesh["n7"].add_service(answering("late"));
    mesh.run_for(150ms);
    for (int i = 1; i <= kCount; ++i) CHECK(mesh.await(mesh[name(i)].call("late.get")).i64() == 1);
  }

  TEST_CASE("two nodes that cannot reach one another stay in the mesh of all others") {
    constexpr int kCount = 8;
    SimMesh mesh(Carrier::kTcp);
    start(mesh, kCount);
    SimHost* a[] = {&mesh.process("n1").host()};
    SimHost* b[] = {&mesh.process("n2").host()};
    mesh.world.fabric().partition(a, b);
    for (int i = 0; i < 400; ++i) {
      mesh.run_for(50ms);
      for (int who = 3; who <= kCount; ++who) {
        CHECK(mesh.sees(name(who), "n1"));
        CHECK(mesh.sees(name(who), "n2"));
      }
    }
    mesh.world.fabric().heal_all();
    CHECK(mesh.until(
        [&] { return holders(mesh, kCount, "n1") + holders(mesh, kCount, "n2") == 2 * (kCount - 1); }, 30s));
  }

  TEST_CASE("who leaves in good order is gone everywhere, and no call fails") {
    constexpr int kCount = 8;
    SimMesh mesh(Carrier::kTcp);
    start(mesh, kCount);
    Internal log(mesh["n1"]);
    mesh.stop("n4");
    mesh.run_for(1s);
    for (int i = 1; i <= kCount; ++i) {
      if (i != 4) CHECK_FALSE(mesh.sees(name(i), "n4"));
    }
    const Lines lines = log.take();
    CHECK(std::count(lines.begin(), lines.end(), "$node.disconnected n4 unexpected=false") == 1);
    CHECK(std::count(lines.begin(), lines.end(), "$node.disconnected n4 unexpected=true") == 0);
  }

  TEST_CASE("a process that is restarted under its name is back with its new services") {
    constexpr int kCount = 6;
    SimMesh mesh(Carrier::kTcp);
    start(mesh, kCount);
    mesh.crash("n2");
    mesh.run_for(1s);
    mesh.add("n2").add_service(answering("new"));
    mesh.start("n2");
    CHECK(mesh.await(mesh["n6"].call("new.get")).i64() == 1);
    mesh.run_for(20s);
    for (int i = 1; i <= kCount; ++i) CHECK(holders(mesh, kCount, name(i)) == kCount - 1);
  }
}

}  // namespace weft
