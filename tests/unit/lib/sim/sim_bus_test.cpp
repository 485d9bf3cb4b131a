#include "lib/sim/sim_bus.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/sim/sim_bus_transporter.h"
#include "tests/support/recording_listener.h"

namespace weft {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// A process with a transporter that keeps what it is told.
struct BusNode {
  BusNode(SimWorld& world, SimHost& host, const std::string& id, const std::string& name_space = {},
          const SimBusTransporterOptions& options = {})
      : process(world, host), transporter(std::in_place, process.runtime(), options) {
    transporter->start({id, name_space}, listener, [this](Result<> result) {
      started = result.ok();
      start_error = result.ok() ? "" : result.error().name();
    });
  }
  BusNode(SimWorld& world, const std::string& id, const std::string& name_space = {},
          const SimBusTransporterOptions& options = {})
      : BusNode(world, world.fabric().add_host(id), id, name_space, options) {}

  SimRuntime process;
  test::RecordingListener listener;
  std::optional<SimBusTransporter> transporter;
  bool started = false;
  std::string start_error;
};

using Lines = std::vector<std::string>;

struct Mesh {
  explicit Mesh(std::uint64_t seed = 1) : world(seed) {}
  void run(Duration span = milliseconds(20)) { world.run_for(span); }

  SimWorld world;
  SimBus bus{world};
};

}  // namespace

TEST_SUITE("sim bus") {
  TEST_CASE("frames reach the node they are for, and a broadcast every node of the namespace") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    BusNode other(mesh.world, "c", "dev");
    mesh.run();
    CHECK(a.started);
    CHECK(mesh.bus.client_count() == 3);
    CHECK(a.transporter->send("b", PacketType::kRequest, "hello", {}).ok());
    CHECK(a.transporter->broadcast(PacketType::kHeartbeat, "beat").ok());
    mesh.run();
    CHECK(b.listener.lines == Lines{"REQ hello", "HEARTBEAT beat"});
    CHECK(a.listener.lines == Lines{"HEARTBEAT beat"});
    CHECK(other.listener.lines.empty());
  }

  TEST_CASE("two members of one node ID both get what is sent to it") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    BusNode twin(mesh.world, mesh.world.fabric().add_host("twin"), "b");
    mesh.run();
    CHECK(a.transporter->send("b", PacketType::kPing, "x", {}).ok());
    mesh.run();
    CHECK(b.listener.lines == twin.listener.lines);
    CHECK(b.listener.lines == Lines{"PING x"});
  }

  TEST_CASE("the sender hears that nobody takes a frame, if it named the frame") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    mesh.run();
    CHECK(a.transporter->send("nobody", PacketType::kRequest, "x", {}).ok());
    CHECK(a.transporter->send("nobody", PacketType::kRequest, "x", "req-7").ok());
    mesh.run();
    CHECK(a.listener.lines == Lines{"undelivered nobody req-7"});
  }

  TEST_CASE("a probe is answered for a node that is not there; one that is there receives the packet") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    mesh.run();
    a.transporter->probe("nobody", "pong");
    a.transporter->probe("b", "pong");
    a.transporter->probe("b", {});
    mesh.run();
    CHECK(a.listener.lines == Lines{"undelivered nobody "});
    CHECK(b.listener.lines == Lines{"PONG pong"});
  }

  TEST_CASE("a killed node is no taker once the bus sees its connection end; what was under way is lost") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    mesh.run();
    b.process.kill();
    CHECK(a.transporter->send("b", PacketType::kRequest, "x", "first").ok());
    mesh.run();
    const std::size_t told = a.listener.count("undelivered b first");
    CHECK(told <= 1);  // Depends on which is quicker, the end or the frame.
    CHECK(a.transporter->send("b", PacketType::kRequest, "x", "second").ok());
    mesh.run();
    CHECK(a.listener.has("undelivered b second"));
    CHECK(b.listener.lines.empty());
  }

  TEST_CASE("a node that stops is gone for all others before it says that it has stopped") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    std::optional<BusNode> b(std::in_place, mesh.world, "b");
    mesh.run();
    CHECK(b->transporter->send("a", PacketType::kResponse, "last", {}).ok());
    bool stopped = false;
    b->transporter->stop([&](Result<> result) { stopped = result.ok(); });
    CHECK_FALSE(b->transporter->send("a", PacketType::kResponse, "too late", {}).ok());
    CHECK(mesh.world.run_until([&] { return stopped; }, seconds(2)));
    CHECK(mesh.bus.client_count() == 1);
    mesh.run();
    CHECK(a.listener.lines == Lines{"RES last"});
  }

  TEST_CASE("stopping ends in time with the bus away, and starting waits for it") {
    Mesh mesh;
    mesh.bus.stop();
    BusNode a(mesh.world, "a");
    mesh.run(seconds(3));
    CHECK_FALSE(a.started);
    CHECK(a.start_error.empty());
    mesh.bus.start();
    mesh.run(seconds(4));
    CHECK(a.started);
    mesh.bus.freeze();
    bool stopped = false;
    a.transporter->stop([&](Result<>) { stopped = true; });
    mesh.run(milliseconds(1001));
    CHECK(stopped);
    CHECK(a.listener.lines.empty());
  }

  TEST_CASE("a bus that restarts is found again by all, with their subscriptions") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    const std::string actions[] = {"math.add"};
    b.transporter->subscribe_balanced(actions, {});
    mesh.run();
    mesh.bus.stop();
    mesh.run();
    CHECK(a.listener.lines == Lines{"disconnected"});
    CHECK(a.transporter->send("b", PacketType::kPing, "x", {}).error().name() == "BrokerDisconnectedError");
    mesh.run(seconds(1));
    mesh.bus.start();
    mesh.run(seconds(3));
    CHECK(a.listener.lines == Lines{"disconnected", "reconnected"});
    CHECK(b.listener.lines == Lines{"disconnected", "reconnected"});
    CHECK(a.transporter->publish_balanced_request("math.add", "sum").ok());
    mesh.run();
    CHECK(b.listener.lines.back() == "REQ sum");
  }

  TEST_CASE("balanced requests and events go to one taker of each, all of them in turn or by chance") {
    Mesh mesh;
    std::vector<std::unique_ptr<BusNode>> members;
    for (const char* id : {"a", "b", "c"}) members.push_back(std::make_unique<BusNode>(mesh.world, id));
    const std::string actions[] = {"math.add"};
    const BalancedEvent events[] = {{"mail", "user.*"}};
    members[0]->transporter->subscribe_balanced(actions, events);
    members[1]->transporter->subscribe_balanced(actions, events);
    mesh.run();
    for (int i = 0; i < 100; ++i) {
      CHECK(members[2]->transporter->publish_balanced_request("math.add", "r").ok());
      CHECK(members[2]->transporter->publish_balanced_event("mail", "user.created", "e").ok());
    }
    CHECK(members[2]->transporter->publish_balanced_event("mail", "order.created", "no").ok());
    mesh.run();
    const auto& a = members[0]->listener;
    const auto& b = members[1]->listener;
    CHECK(a.count("REQ r") + b.count("REQ r") == 100);
    CHECK(a.count("EVENT e") + b.count("EVENT e") == 100);
    CHECK(a.count("REQ r") > 20);
    CHECK(b.count("REQ r") > 20);
    CHECK(members[2]->listener.lines.empty());
    members[0]->transporter->subscribe_balanced({}, {});
    mesh.run();
    const std::size_t before = b.count("REQ r");
    for (int i = 0; i < 10; ++i)
      CHECK(members[2]->transporter->publish_balanced_request("math.add", "r").ok());
    mesh.run();
    CHECK(b.count("REQ r") == before + 10);
  }

  TEST_CASE("a frozen node misses nothing, and a bus that does not answer is left") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    mesh.run();
    b.process.freeze();
    for (int i = 0; i < 10; ++i) CHECK(a.transporter->send("b", PacketType::kPing, "x", "c").ok());
    mesh.run(seconds(1));
    CHECK(a.listener.lines.empty());
    b.process.thaw();
    mesh.run();
    CHECK(b.listener.count("PING x") == 10);
    mesh.bus.freeze();
    mesh.run(seconds(11));
    CHECK(a.listener.lines == Lines{"disconnected"});
    mesh.bus.thaw();
    mesh.run(seconds(5));
    CHECK(a.listener.lines == Lines{"disconnected", "reconnected"});
    CHECK(mesh.bus.client_count() == 2);
  }

  TEST_CASE("a client behind a cut wire is dropped when the kernel gives up, and comes back when it heals") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    mesh.run();
    const auto cut = mesh.world.fabric().isolate(b.process.host());
    mesh.run(seconds(1));
    CHECK(a.transporter->send("b", PacketType::kRequest, "x", "early").ok());
    mesh.run(seconds(4));
    CHECK(b.listener.lines == Lines{"disconnected"});  // Its keepalive is quicker than its ping.
    CHECK_FALSE(a.listener.has("undelivered b early"));
    mesh.run(seconds(20));
    CHECK(a.transporter->send("b", PacketType::kRequest, "x", "late").ok());
    mesh.run();
    CHECK(a.listener.lines == Lines{"undelivered b late"});
    mesh.world.fabric().heal(cut);
    mesh.run(seconds(8));
    CHECK(b.listener.lines == Lines{"disconnected", "reconnected"});
  }

  TEST_CASE("a client that reads too slowly is cut off by the bus") {
    Mesh mesh;
    SimBusTransporterOptions options;
    options.payload_bytes_max = 4UL << 20;
    BusNode a(mesh.world, mesh.world.fabric().add_host("a"), "a", {}, options);
    BusNode b(mesh.world, "b");
    mesh.run();
    b.process.freeze();
    const std::string big(1UL << 20, 'x');
    for (int i = 0; i < 12; ++i) {
      CHECK(a.transporter->send("b", PacketType::kEvent, big, {}).ok());
      mesh.run(milliseconds(10));
    }
    CHECK(mesh.bus.client_count() == 1);
    b.process.thaw();
    mesh.run(seconds(1));
    CHECK(b.listener.lines.size() >= 2);
    CHECK(b.listener.lines.back() == "reconnected");
  }

  TEST_CASE("names that make no subject and payloads that are too large are refused with a clear error") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode bad(mesh.world, mesh.world.fabric().add_host("x"), "no good");
    mesh.run();
    CHECK(bad.start_error == "BrokerOptionsError");
    CHECK(a.transporter->send("b *", PacketType::kPing, "x", {}).error().type() == "INVALID_SUBJECT");
    const std::string big((1UL << 20) + 1, 'x');
    CHECK(a.transporter->broadcast(PacketType::kInfo, big).error().code() == 413);
    CHECK(a.transporter->broadcast(PacketType::kInfo, BytesView(big).substr(1)).ok());
    mesh.run();
    CHECK(a.listener.lines.size() == 1);
  }

  TEST_CASE("a transporter may be destroyed at any time, also inside an upcall") {
    Mesh mesh;
    BusNode a(mesh.world, "a");
    BusNode b(mesh.world, "b");
    {
      BusNode early(mesh.world, "early");
      mesh.run(std::chrono::microseconds(300));
    }
    mesh.run();
    b.listener.on_each_frame = [&](const FrameView&) { b.transporter.reset(); };
    CHECK(a.transporter->send("b", PacketType::kPing, "1", {}).ok());
    CHECK(a.transporter->send("b", PacketType::kPing, "2", {}).ok());
    mesh.run();
    CHECK(b.listener.lines == Lines{"PING 1"});
    CHECK(mesh.bus.client_count() == 1);
  }

  TEST_CASE("the same seed gives the same run, bus and all") {
    const auto hash_of = [](std::uint64_t seed) {
      Mesh mesh(seed);
      std::vector<std::unique_ptr<BusNode>> members;
      for (const char* id : {"a", "b", "c", "d"})
        members.push_back(std::make_unique<BusNode>(mesh.world, id));
      const std::string actions[] = {"x.y"};
      for (int i = 0; i < 200; ++i) {
        BusNode& member = *members[mesh.world.random().below(4)];
        member.transporter->subscribe_balanced(actions, {});
        (void)member.transporter->broadcast(PacketType::kHeartbeat, std::to_string(i));
        (void)member.transporter->publish_balanced_request("x.y", "r");
        if (i % 50 == 20) mesh.bus.stop();
        if (i % 50 == 30) mesh.bus.start();
        mesh.run(milliseconds(100));
      }
      return mesh.world.trace_hash();
    };
    CHECK(hash_of(1) == hash_of(1));
    CHECK(hash_of(1) != hash_of(2));
  }
}

}  // namespace weft
