// Several Gossips wired together, alone and among nodes that keep to Moleculer's rules.

#include "tests/unit/broker/gossip/mesh.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "lib/random/random.h"

using namespace std::chrono_literals;

namespace weft::test {
namespace {

constexpr Duration kPeriod = 1s;

std::string name(int i) {
  return "n" + std::to_string(i);
}

// Starts n1 … n<count>; each is told of n1 only.
void start_with_seed(Mesh& mesh, int count, const std::vector<Mesh::Kind>& kinds = {Mesh::Kind::kWeft}) {
  for (int i = 1; i <= count; ++i) {
    mesh.start(name(i), kinds[static_cast<std::size_t>(i - 1) % kinds.size()], {"s" + std::to_string(i)});
    if (i > 1) mesh.sight(name(i), "n1");
  }
}

// How many seeds a random test runs with: WEFT_SEEDS, or 20.
std::uint64_t seeds() {
  const char* text = std::getenv("WEFT_SEEDS");
  return text == nullptr ? 20 : std::strtoull(text, nullptr, 10);
}

// How long it took to agree, as a number of milliseconds; -1 if it did not.
double ms_to_converge(Mesh& mesh, Duration limit) {
  const auto took = mesh.run_until([&] { return mesh.converged(); }, limit);
  return took ? to_ms(*took) : -1;
}

}  // namespace

TEST_SUITE("gossip mesh") {
  TEST_CASE("two nodes see each other's services a few round trips after one has sighted the other") {
    Mesh mesh;
    mesh.start("a", {"x"});
    mesh.start("b", {"y"});
    mesh.sight("a", "b");
    const double took = ms_to_converge(mesh, 300ms);
    CHECK(took > 0);
    CHECK(took <= 10);
  }

  TEST_CASE("five nodes that know one of them find all others without waiting for a period") {
    Mesh mesh;
    start_with_seed(mesh, 5);
    const double took = ms_to_converge(mesh, 300ms);
    CHECK(took > 0);
  }

  TEST_CASE("a new service is known everywhere at once, and a removed one forgotten") {
    Mesh mesh;
    start_with_seed(mesh, 5);
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.run_for(kPeriod);
    mesh.set_services("n4", {"s4", "late"});
    CHECK(ms_to_converge(mesh, 5ms) > 0);
    mesh.set_services("n2", {});
    CHECK(ms_to_converge(mesh, 100ms) > 0);
  }

  TEST_CASE("a crowd of forty agrees on a change within two periods, and mostly by rumour") {
    Mesh mesh;
    start_with_seed(mesh, 40);
    REQUIRE(ms_to_converge(mesh, 20 * kPeriod) > 0);
    mesh.run_for(2 * kPeriod);
    const std::size_t before = mesh.packets(PacketType::kGossipResponse);
    mesh.set_services("n7", {"late"});
    const Instant changed = mesh.now();
    int informed_early = 0;
    CHECK(mesh.run_until(
        [&] {
          if (mesh.now() - changed <= 100ms) {
            informed_early = 0;
            for (int i = 1; i <= 40; ++i)
              informed_early += i != 7 && mesh.sees(name(i), "n7", {"late"}) ? 1 : 0;
          }
          return mesh.converged();
        },
        2 * kPeriod));
    CHECK(informed_early >= 30);
    // Every node tells four others once: no storm.
    CHECK(mesh.packets(PacketType::kGossipResponse) - before < 40 * 4 + 80);
  }

  TEST_CASE("nothing but one request a period is sent when nothing happens") {
    Mesh mesh;
    start_with_seed(mesh, 5);
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.run_for(5 * kPeriod);
    const std::size_t requests = mesh.packets(PacketType::kGossipRequest);
    const std::size_t responses = mesh.packets(PacketType::kGossipResponse);
    mesh.run_for(100 * kPeriod);
    CHECK(mesh.packets(PacketType::kGossipRequest) - requests <= 5 * 101);
    CHECK(mesh.packets(PacketType::kGossipResponse) == responses);
  }

  TEST_CASE("a crashed peer is usable again within five periods of listening, seen from both sides") {
    for (const bool returning_knows_us : {true, false}) {
      for (int downtime_ms : {0, 1, 5, 300, 2000, 60'000}) {
        CAPTURE(returning_knows_us);
        CAPTURE(downtime_ms);
        Mesh mesh(kPeriod);
        mesh.start("w", {"a"});
        mesh.start("r", {"b"});
        mesh.sight("w", "r");
        REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
        mesh.run_for(3 * kPeriod);
        mesh.crash("r");
        mesh.run_for(std::chrono::milliseconds(downtime_ms));
        mesh.start("r", {"b", "more"});
        if (returning_knows_us) mesh.sight("r", "w");
        const double took = ms_to_converge(mesh, 5 * kPeriod);
        CHECK(took >= 0);
        if (returning_knows_us) CHECK(took <= 500);  // Who speaks is asked at once.
      }
    }
  }

  TEST_CASE("of five nodes one crashes and comes back: all notice both") {
    Mesh mesh;
    start_with_seed(mesh, 5);
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.run_for(3 * kPeriod);
    mesh.crash("n3");
    CHECK(ms_to_converge(mesh, 500ms) >= 0);
    mesh.run_for(7 * kPeriod);
    mesh.start("n3", {"other"});
    mesh.sight("n3", "n1");
    CHECK(ms_to_converge(mesh, 1s) >= 0);
  }

  TEST_CASE("a restart that nobody noticed is noticed when the new process speaks") {
    Mesh mesh;
    start_with_seed(mesh, 3);
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.set_services("n3", {"old", "older"});
    mesh.set_services("n3", {"old"});
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.start("n3", {"new"});  // No link was seen to break.
    mesh.sight("n3", "n1");
    CHECK(ms_to_converge(mesh, 2 * kPeriod) >= 0);
  }

  TEST_CASE("a false rumour of a node's death is refuted within milliseconds") {
    Mesh mesh;
    start_with_seed(mesh, 5);
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.run_for(2 * kPeriod);
    mesh.inject("n1", PacketType::kGossipRequest, "n2", {{"offline", {{"n4", 77}}}});
    CHECK_FALSE(mesh.node("n1").view().contains("n4"));
    CHECK(ms_to_converge(mesh, 1s) > 0);
    mesh.run_for(10 * kPeriod);
    CHECK(mesh.converged());
  }

  TEST_CASE("a rumour that reached all but the one it is about is refuted everywhere") {
    Mesh mesh;
    start_with_seed(mesh, 5);
    REQUIRE(ms_to_converge(mesh, 2 * kPeriod) > 0);
    mesh.run_for(kPeriod);
    for (const char* who : {"n1", "n2", "n3", "n5"}) {
      const char* other = who == std::string_view("n1") ? "n2" : "n1";
      mesh.inject(who, PacketType::kGossipResponse, other, {{"offline", {{"n4", 1000}}}});
    }
    CHECK(ms_to_converge(mesh, 2 * kPeriod) > 0);
  }

  TEST_CASE("a mixed mesh agrees") {
    constexpr auto kWeft = Mesh::Kind::kWeft;
    constexpr auto kMoleculer = Mesh::Kind::kMoleculer;
    const std::vector<std::vector<Mesh::Kind>> mixes = {{kWeft, kMoleculer},
                                                        {kMoleculer, kWeft},
                                                        {kMoleculer, kMoleculer, kWeft},
                                                        {kWeft, kWeft, kMoleculer}};
    for (std::size_t mix = 0; mix < mixes.size(); ++mix) {
      CAPTURE(mix);
      Mesh mesh;
      start_with_seed(mesh, 5, mixes[mix]);
      CHECK(ms_to_converge(mesh, 15 * kPeriod) > 0);

      // What a weft node changes its peers know at once, of either kind.
      const std::string weft_node = mixes[mix][0] == kWeft ? "n1" : (mixes[mix][1] == kWeft ? "n2" : "n3");
      mesh.set_services(weft_node, {"changed"});
      CHECK(ms_to_converge(mesh, 100ms) > 0);
      // What a Moleculer node changes goes its usual way.
      const std::string plain_node =
          mixes[mix][0] == kMoleculer ? "n1" : (mixes[mix][1] == kMoleculer ? "n2" : "n3");
      mesh.set_services(plain_node, {"changed too"});
      CHECK(ms_to_converge(mesh, 15 * kPeriod) > 0);
      CHECK_FALSE(ms_to_converge(mesh, 0s) < 0);

      for (const std::string& victim : {weft_node, plain_node}) {
        CAPTURE(victim);
        const auto kind = victim == weft_node ? kWeft : kMoleculer;
        mesh.crash(victim);
        mesh.run_for(2 * kPeriod);
        mesh.start(victim, kind, {"again"});
        mesh.sight(victim, victim == "n1" ? "n2" : "n1");
        CHECK(ms_to_converge(mesh, 30 * kPeriod) > 0);
      }
      mesh.run_for(20 * kPeriod);
      CHECK(mesh.converged());  // And it stays so.
    }
  }

  TEST_CASE("a weft node takes a returning Moleculer node promptly") {
    for (const bool returning_knows_us : {true, false}) {
      CAPTURE(returning_knows_us);
      Mesh mesh;
      mesh.start("w", {"a"});
      mesh.start("j", Mesh::Kind::kMoleculer, {"b"});
      mesh.sight("w", "j");
      REQUIRE(ms_to_converge(mesh, 5 * kPeriod) > 0);
      mesh.run_for(3 * kPeriod);
      mesh.crash("j");
      mesh.run_for(2 * kPeriod);
      mesh.start("j", Mesh::Kind::kMoleculer, {"b"});
      if (returning_knows_us) mesh.sight("j", "w");
      const auto took = mesh.run_until([&] { return mesh.sees("w", "j", {"b"}); }, 5 * kPeriod);
      CHECK(took.has_value());
    }
  }

  TEST_CASE("crashes and returns at random end in agreement") {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
      CAPTURE(seed);
      SeededRandom random(seed);
      Mesh mesh;
      start_with_seed(mesh, 6);
      std::set<std::string> down;
      for (int step = 0; step < 40; ++step) {
        mesh.run_for(std::chrono::milliseconds(random.below(1500)));
        const std::string id = name(static_cast<int>(random.below(6)) + 1);
        if (down.erase(id) > 0) {
          mesh.start(id, {"s" + std::to_string(step)});
          for (int i = 1; i <= 6; ++i) {
            if (name(i) != id && random.below(2) == 0) mesh.sight(id, name(i));
          }
        } else if (random.below(2) == 0) {
          mesh.set_services(id, {"s" + std::to_string(step)});
        } else if (down.size() < 3) {
          mesh.crash(id);
          down.insert(id);
        }
      }
      CHECK(ms_to_converge(mesh, 10 * kPeriod) >= 0);
      mesh.run_for(5 * kPeriod);
      CHECK(mesh.converged());
    }
  }

  TEST_CASE("crashes and returns at random in a mixed mesh end in agreement") {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
      CAPTURE(seed);
      SeededRandom random(seed);
      const auto kind = [](int i) { return i % 2 == 0 ? Mesh::Kind::kWeft : Mesh::Kind::kMoleculer; };
      Mesh mesh;
      start_with_seed(mesh, 6, {kind(1), kind(2)});
      for (int step = 0; step < 20; ++step) {
        mesh.run_for(std::chrono::milliseconds(random.below(3000)));
        const int i = static_cast<int>(random.below(6)) + 1;
        if (random.below(2) == 0) {
          mesh.set_services(name(i), {"s" + std::to_string(step)});
          continue;
        }
        mesh.crash(name(i));
        mesh.run_for(std::chrono::milliseconds(random.below(3000)));
        mesh.start(name(i), kind(i), {"s" + std::to_string(step)});
        for (int other = 1; other <= 6; ++other) {
          if (other != i) mesh.sight(name(i), name(other));
        }
      }
      CHECK(ms_to_converge(mesh, 60 * kPeriod) >= 0);
    }
  }

  TEST_CASE("the same seeds give the same trace") {
    const auto trace = [] {
      Mesh mesh;
      start_with_seed(mesh, 5);
      mesh.run_for(3 * kPeriod);
      mesh.crash("n2");
      mesh.run_for(5 * kPeriod);
      std::ostringstream out;
      for (const auto& d : mesh.deliveries()) {
        out << d.at.time_since_epoch().count() << d.from << d.to << to_string(d.type) << '\n';
      }
      return out.str();
    };
    CHECK(trace() == trace());
  }
}
}  // namespace weft::test
