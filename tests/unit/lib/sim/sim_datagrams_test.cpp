#include "lib/sim/sim_datagrams.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/sim/sim_runtime.h"

namespace weft {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::uint16_t kPort = 4445;
constexpr const char* kGroup = "239.0.0.0";

// A process with a discovery socket.
struct Talker {
  Talker(SimWorld& world, SimHost& host, DatagramOptions options = group()) : process(world, host) {
    auto made = process.network().open_datagram(options, [this](BytesView bytes, const SocketAddress& from) {
      heard.push_back(from.host + ":" + std::string(bytes));
      last = from;
    });
    socket = std::move(*made);
  }
  static DatagramOptions group() {
    return {.bind = {"0.0.0.0", kPort}, .multicast_group = kGroup, .broadcast = true};
  }

  SimRuntime process;
  std::unique_ptr<DatagramSocket> socket;
  std::vector<std::string> heard;
  SocketAddress last;
};

}  // namespace

TEST_SUITE("sim datagrams") {
  TEST_CASE("multicast reaches every member on every host, the sender too, and nobody else") {
    SimWorld world(1);
    SimHost& host_a = world.fabric().add_host();
    Talker a(world, host_a);
    Talker same_host(world, host_a);
    Talker b(world, world.fabric().add_host());
    Talker other_port(world, world.fabric().add_host(), {.bind = {"0.0.0.0", 1}, .multicast_group = kGroup});
    Talker no_member(world, world.fabric().add_host(), {.bind = {"0.0.0.0", kPort}});
    a.socket->send("hi", {kGroup, kPort});
    world.run_for(milliseconds(10));
    const std::vector<std::string> wanted{"10.0.0.1:hi"};
    CHECK(a.heard == wanted);
    CHECK(same_host.heard == wanted);
    CHECK(b.heard == wanted);
    CHECK(b.last.port == kPort);
    CHECK(other_port.heard.empty());
    CHECK(no_member.heard.empty());
  }

  TEST_CASE("broadcast reaches those bound to the port, when the sender may broadcast") {
    SimWorld world(1);
    Talker a(world, world.fabric().add_host());
    Talker b(world, world.fabric().add_host(), {.bind = {"0.0.0.0", kPort}});
    a.socket->send("hi", {"10.255.255.255", kPort});
    b.socket->send("no", {"255.255.255.255", kPort});
    world.run_for(milliseconds(10));
    CHECK(b.heard == std::vector<std::string>{"10.0.0.1:hi"});
    CHECK(a.heard == std::vector<std::string>{"10.0.0.1:hi"});
  }

  TEST_CASE("loopback's broadcast and multicast stay on the host") {
    SimWorld world(1);
    SimHost& host = world.fabric().add_host();
    DatagramOptions options = Talker::group();
    options.interface_address = "127.0.0.1";
    Talker a(world, host, options);
    Talker near(world, host);
    Talker far(world, world.fabric().add_host());
    a.socket->send("multi", {kGroup, kPort});
    world.run_for(milliseconds(10));
    a.socket->send("broad", {"127.255.255.255", kPort});
    world.run_for(milliseconds(10));
    CHECK(near.heard == std::vector<std::string>{"127.0.0.1:multi", "127.0.0.1:broad"});
    CHECK(far.heard.empty());
  }

  TEST_CASE("of several processes of a host the last bound gets what is sent to the host alone") {
    SimWorld world(1);
    SimHost& host = world.fabric().add_host("target");
    Talker first(world, host);
    std::optional<Talker> second(std::in_place, world, host);
    Talker sender(world, world.fabric().add_host());
    sender.socket->send("one", {"target", kPort});
    world.run_for(milliseconds(10));
    CHECK(second->heard.size() == 1);
    second.reset();
    sender.socket->send("two", {host.address(), kPort});
    world.run_for(milliseconds(10));
    CHECK(first.heard == std::vector<std::string>{"10.0.0.2:two"});
  }

  TEST_CASE("a port is shared only by those who all agree to") {
    SimWorld world(1);
    SimRuntime process(world, world.fabric().add_host());
    const auto ignore = [](BytesView, const SocketAddress&) {};
    auto held = process.network().open_datagram({.bind = {"0.0.0.0", kPort}, .reuse_address = false}, ignore);
    CHECK(held.ok());
    CHECK(process.network().open_datagram({.bind = {"0.0.0.0", kPort}}, ignore).error().type() ==
          "EADDRINUSE");
    auto chosen = process.network().open_datagram({}, ignore);
    CHECK((*chosen)->local_address().port > 1024);
  }

  TEST_CASE("loss, duplicates and overtaking happen about as often as asked") {
    SimWorld world(3);
    SimLink link;
    link.loss = 0.25;
    link.duplicate = 0.2;
    link.reorder = 0.3;
    link.reorder_max = milliseconds(50);
    world.fabric().set_link(link);
    Talker a(world, world.fabric().add_host(), {});
    Talker b(world, world.fabric().add_host("b"));
    std::vector<std::string> sent;
    for (int i = 0; i < 2000; ++i) {
      a.socket->send(std::to_string(10000 + i), {"b", kPort});
      world.run_for(milliseconds(2));
    }
    world.run_for(seconds(1));
    auto sorted = b.heard;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted != b.heard);
    const std::size_t all = b.heard.size();
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    CHECK(all > 1600);  // 2000 × 1.2 × 0.75 = 1800.
    CHECK(all < 2000);
    CHECK(sorted.size() > 1450);
    CHECK(sorted.size() < 1750);
  }

  TEST_CASE("a cut swallows datagrams one way") {
    SimWorld world(1);
    SimHost& host_a = world.fabric().add_host("a");
    SimHost& host_b = world.fabric().add_host("b");
    Talker a(world, host_a);
    Talker b(world, host_b);
    SimHost* const from[] = {&host_a};
    SimHost* const to[] = {&host_b};
    const auto cut = world.fabric().cut_one_way(from, to);
    a.socket->send("x", {"b", kPort});
    b.socket->send("y", {"a", kPort});
    world.run_for(milliseconds(10));
    CHECK(a.heard.size() == 1);
    CHECK(b.heard.empty());
    world.fabric().heal(cut);
    a.socket->send("x", {"b", kPort});
    world.run_for(milliseconds(10));
    CHECK(b.heard.size() == 1);
  }

  TEST_CASE("a frozen process keeps as many datagrams as a kernel would, and hears them later") {
    SimWorld world(1);
    Talker a(world, world.fabric().add_host());
    Talker b(world, world.fabric().add_host("b"));
    b.process.freeze();
    for (int i = 0; i < 5000; ++i) a.socket->send("x", {"b", kPort});
    world.run_for(seconds(1));
    b.process.thaw();
    world.run_for(seconds(1));
    CHECK(b.heard.size() == 1000);
    a.socket->send("x", {"b", kPort});
    world.run_for(seconds(1));
    CHECK(b.heard.size() == 1001);
  }

  TEST_CASE("a killed process and a closed socket hear nothing") {
    SimWorld world(1);
    Talker a(world, world.fabric().add_host());
    Talker b(world, world.fabric().add_host("b"));
    Talker c(world, world.fabric().add_host("c"));
    a.socket->send("x", {"b", kPort});
    a.socket->send("x", {"c", kPort});
    b.process.kill();
    c.socket.reset();
    world.run_for(milliseconds(10));
    CHECK(b.heard.empty());
    CHECK(c.heard.empty());
  }
}

}  // namespace weft
