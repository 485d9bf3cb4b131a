#include "lib/sim/sim_world.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/lib/sim/support.h"

namespace weft {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A little mesh that talks over streams and datagrams while its wires fail; everything drawn from the seed.
struct Outcome {
  std::uint64_t hash;
  std::vector<std::string> trace;
};

Outcome run_mesh(std::uint64_t seed, bool traced = false, Duration span = seconds(20)) {
  Outcome outcome{};
  SimWorld world(seed);
  if (traced) world.set_trace([&outcome](std::string_view line) { outcome.trace.emplace_back(line); });
  SimLink link;
  link.loss = 0.02;
  link.duplicate = 0.05;
  link.reorder = 0.05;
  world.fabric().set_link(link);

  struct Node {
    Node(SimWorld& world, SimHost& host) : process(world, host) {
      listener = std::move(*process.network().listen({"", 80}, {}, [this](std::unique_ptr<Stream> stream) {
        ends.push_back(std::make_unique<RecordingEnd>(std::move(stream)));
      }));
      socket = std::move(*process.network().open_datagram(
          {.bind = {"0.0.0.0", 4445}, .multicast_group = "239.0.0.0"},
          [this](BytesView, const SocketAddress& from) {
            ends.push_back(std::make_unique<RecordingEnd>(process.network().connect({from.host, 80}, {})));
          }));
      beat();
    }
    void beat() {
      Runtime runtime = process.runtime();
      if (runtime.random.below(20) == 0) socket->send("here", {"239.0.0.0", 4445});
      for (auto& end : ends) {
        if (end->closed.empty()) (void)end->write(std::to_string(runtime.random.next()));
      }
      std::erase_if(ends, [](const auto& end) { return !end->closed.empty(); });
      if (ends.size() > 20) ends.erase(ends.begin());
      timer.set_after(runtime.loop, milliseconds(50), [this] { beat(); });
    }
    SimRuntime process;
    std::unique_ptr<StreamListener> listener;
    std::unique_ptr<DatagramSocket> socket;
    std::vector<std::unique_ptr<RecordingEnd>> ends;
    Timer timer;
  };
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(std::make_unique<Node>(world, world.fabric().add_host()));
  const Instant end = world.now() + span;
  while (world.now() < end) {
    const std::size_t victim = world.random().below(nodes.size());
    SimHost& host = nodes[victim]->process.host();
    switch (world.random().below(4)) {
      case 0: {
        const auto cut = world.fabric().isolate(host);
        world.run_for(milliseconds(static_cast<int>(world.random().below(4000))));
        world.fabric().heal(cut);
        break;
      }
      case 1:
        nodes[victim]->process.freeze();
        world.run_for(milliseconds(static_cast<int>(world.random().below(3000))));
        nodes[victim]->process.thaw();
        break;
      case 2:
        nodes[victim]->process.kill();
        nodes[victim] = std::make_unique<Node>(world, host);
        break;
      default:
        world.fabric().break_streams(host, world.fabric().host(world.random().below(nodes.size())));
    }
    world.run_for(milliseconds(500));
  }
  outcome.hash = world.trace_hash();
  return outcome;
}

}  // namespace

TEST_SUITE("sim world") {
  TEST_CASE("a seed is all there is to a run: same seed, same trace; another seed, another trace") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const std::uint64_t hash = run_mesh(seed).hash;
      CHECK(run_mesh(seed).hash == hash);
      CHECK(run_mesh(seed + 100).hash != hash);
    }
  }

  TEST_CASE("watching a run changes nothing, and two watched runs show the same lines") {
    const Outcome quiet = run_mesh(9);
    const Outcome shown = run_mesh(9, true);
    CHECK(shown.hash == quiet.hash);
    CHECK(shown.trace.size() > 1000);
    CHECK(run_mesh(9, true).trace == shown.trace);
  }

  TEST_CASE("run_for moves the clock by its span, events or not") {
    SimWorld world(1);
    world.run_for(seconds(3));
    CHECK(world.elapsed() == seconds(3));
    int ran = 0;
    world.after(seconds(1), [&] { ++ran; });
    const auto gone = world.after(seconds(1), [&] { ++ran; });
    world.cancel(gone);
    world.run_for(seconds(1));
    CHECK(ran == 1);
    CHECK(world.elapsed() == seconds(4));
  }

  TEST_CASE("run_until stops with the event that fulfils it, or at its limit") {
    SimWorld world(1);
    bool happened = false;
    world.after(milliseconds(5), [&] { happened = true; });
    world.after(milliseconds(6), [] {});
    CHECK(world.run_until([&] { return happened; }, seconds(1)));
    CHECK(world.elapsed() == milliseconds(5));
    CHECK_FALSE(world.run_until([] { return false; }, seconds(1)));
    CHECK(world.elapsed() == milliseconds(1005));
  }

  TEST_CASE("log lines of a node are in the trace and in the hash") {
    const auto hash_with = [](const char* text) {
      SimWorld world(1);
      std::string shown;
      world.set_trace([&](std::string_view line) { shown = line; });
      SimRuntime process(world, world.fabric().add_host("h"));
      world.run_for(milliseconds(1500));
      Logger(process.runtime().log, "n1", "broker", LogLevel::kInfo).info(text);
      CHECK(shown == std::string("1.500000 n1 info [broker] ") + text);
      return world.trace_hash();
    };
    CHECK(hash_with("ready") != hash_with("steady"));
  }

  TEST_CASE("hosts have names, addresses in order, and wires of their own") {
    SimWorld world(1);
    SimFabric& fabric = world.fabric();
    for (int i = 0; i < 300; ++i) fabric.add_host();
    CHECK(fabric.host(0).address() == "10.0.0.1");
    CHECK(fabric.host(253).address() == "10.0.0.254");
    CHECK(fabric.host(254).address() == "10.0.1.1");
    CHECK(fabric.find_host("host-3") == &fabric.host(2));
    CHECK(fabric.find_host("10.0.0.3") == &fabric.host(2));
    SimLink lossy;
    lossy.loss = 0.8;
    SimLink slow;
    slow.latency_max = seconds(1);
    fabric.set_link(fabric.host(1), lossy);
    CHECK(fabric.link(fabric.host(1), fabric.host(2)).loss == 0.8);
    CHECK(fabric.link(fabric.host(2), fabric.host(1)).loss == 0.8);
    fabric.set_link(fabric.host(1), fabric.host(2), slow);
    CHECK(fabric.link(fabric.host(1), fabric.host(2)).latency_max == seconds(1));
    CHECK(fabric.link(fabric.host(2), fabric.host(1)).loss == 0.8);
    CHECK(fabric.link(fabric.host(5), fabric.host(6)).loss == 0);
    fabric.set_link(fabric.host(1), std::nullopt);
    CHECK(fabric.link(fabric.host(2), fabric.host(1)).loss == 0);
  }

  TEST_CASE("cuts add up, and each heals by itself") {
    SimWorld world(1);
    SimFabric& fabric = world.fabric();
    SimHost& a = fabric.add_host();
    SimHost& b = fabric.add_host();
    SimHost& c = fabric.add_host();
    SimHost* const as[] = {&a};
    SimHost* const bs[] = {&b, &c};
    const auto partition = fabric.partition(as, bs);
    const auto one_way = fabric.cut_one_way(as, bs);
    CHECK_FALSE(fabric.is_open(b, a));
    CHECK(fabric.is_open(b, c));
    fabric.heal(partition);
    CHECK(fabric.is_open(b, a));
    CHECK_FALSE(fabric.is_open(a, b));
    fabric.heal(one_way);
    const auto alone = fabric.isolate(b);
    SimHost& late = fabric.add_host();
    CHECK_FALSE(fabric.is_open(late, b));
    CHECK(fabric.is_open(b, b));
    CHECK(fabric.is_open(a, late));
    fabric.heal(alone);
    fabric.power_off(c);
    CHECK_FALSE(fabric.is_open(c, c));
    fabric.heal_all();
    CHECK_FALSE(fabric.is_open(a, c));
    fabric.power_on(c);
    CHECK(fabric.is_open(a, c));
  }
}

}  // namespace weft
