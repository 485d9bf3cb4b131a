#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "tests/integration/mesh/helpers.h"
#include "transporters/tcp/tcp_transporter.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;
using Carrier = SimMesh::Carrier;

TEST_SUITE("membership from peer to peer") {
  // A peer that speaks TCP, greeted and known.
  struct TcpPeer {
    TcpPeer(SimMesh& mesh, std::string id) : node(mesh, std::move(id)) {
      const auto port = node.transporter->listen_address().port;
      node.transporter->set_greeting(
          to_json(Value{{"ver", "5"}, {"sender", "p"}, {"host", "host-of-p"}, {"port", port}}));
      node.transporter->learn_address("w", {"w", w_port(mesh)});
    }
    static std::uint16_t w_port(SimMesh& mesh) {
      const Value row = mesh.node_row("w", "w");
      return static_cast<std::uint16_t>(row["port"].i64());
    }
    ScriptedNode node;
  };

  TEST_CASE("a node refutes rumours of its own death in the same exchange") {
    SimMesh mesh(Carrier::kTcp);
    mesh.add("w").add_service(answering("math"));
    mesh.start();
    TcpPeer peer(mesh, "p");
    peer.node.send(PacketType::kGossipRequest, Value{{"offline", {{"w", 100}}}}, "w");
    REQUIRE(mesh.until([&] { return peer.node.count(PacketType::kGossipResponse) > 0; }, 5s));
    const Value answer = peer.node.last(PacketType::kGossipResponse);
    CHECK(answer["online"]["w"][0]["seq"].i64() >= 101);
    CHECK(answer["online"]["w"][0]["services"].size() == 2);
    peer.node.received.clear();
    REQUIRE(mesh.until([&] { return peer.node.count(PacketType::kGossipRequest) > 0; }, 10s));
    const Value request = peer.node.last(PacketType::kGossipRequest);
    CHECK(request["online"]["w"][0].i64() >= 101);
    CHECK(mesh.node_row("w", "w")["available"] == Value(true));
    CHECK(mesh.node_row("w", "w")["seq"].i64() >= 101);
  }

  TEST_CASE("news about oneself in a gossip response is passed over") {
    SimMesh mesh(Carrier::kTcp);
    Broker& w = mesh.add("w");
    w.add_service(answering("math"));
    mesh.start();
    TcpPeer peer(mesh, "p");
    const Value before = mesh.node_row("w", "w");
    peer.node.send(
        PacketType::kGossipResponse,
        Value{{"online",
               {{"w", arr(Value{{"seq", 99}, {"services", arr(service_info("evil", {"x"}))}, {"port", 1}}, 5,
                          50)}}}},
        "w");
    peer.node.send(PacketType::kGossipResponse, Value{{"offline", {{"w", 500}}}}, "w");
    mesh.run_for(3s);
    const Value after = mesh.node_row("w", "w");
    CHECK(after["seq"] == before["seq"]);
    CHECK(after["available"] == Value(true));
    CHECK(refused(mesh, w, "evil.x").type() == "SERVICE_NOT_FOUND");
    CHECK(mesh.await(w.call("math.get")).i64() == 1);
  }

  TEST_CASE("a peer that died comes back into use within five gossip periods, seen from both sides") {
    SimMesh mesh(Carrier::kTcp);
    const BrokerOptions options{.gossip = {.period = 1s}};
    Broker& w = mesh.add("w", options);
    w.add_service(answering("of-w", 1));
    mesh.add("r", options).add_service(answering("r", 2));
    mesh.start();
    CHECK(mesh.await(w.call("r.get")).i64() == 2);
    mesh.crash("r");
    mesh.run_for(2s);
    CHECK_FALSE(mesh.sees("w", "r"));
    Broker& again = mesh.add("r", options);
    again.add_service(answering("r", 3));
    Task<void> starting = again.start();
    starting.start([](void*) {}, nullptr);
    const Duration listening = mesh.elapsed();
    std::optional<Duration> there, back;
    while (mesh.elapsed() - listening < 10s && !(there && back)) {
      if (!there && mesh.await(w.try_call("r.get", {}, {.timeout = 100ms})).ok()) there = mesh.elapsed();
      if (!back && mesh.await(again.try_call("of-w.get", {}, {.timeout = 100ms})).ok()) back = mesh.elapsed();
      mesh.run_for(200ms);
    }
    REQUIRE(there.has_value());
    REQUIRE(back.has_value());
    CHECK(*there - listening <= 5s);
    CHECK(*back - listening <= 5s);
    CHECK(mesh.await(w.call("r.get")).i64() == 3);
  }

  TEST_CASE("two nodes find each other with nothing configured, quickly") {
    SimMesh mesh(Carrier::kTcp);
    mesh.add("a").add_service(answering("math"));
    mesh.start();
    Broker& b = mesh.add("b");
    Task<void> starting = b.start();
    starting.start([](void*) {}, nullptr);
    // The first datagram goes out half a second to a second after the start.
    REQUIRE(mesh.until([&] { return mesh.sees("b", "a"); }, 1300ms));
    CHECK(mesh.await(b.call("math.get")).i64() == 1);
  }

  // A broker called "n" on a host of its own that listens on a certain port.
  struct Namesake {
    Namesake(SimMesh& mesh, const char* host, std::uint16_t port, Value urls = {})
        : process(mesh.world, mesh.world.fabric().add_host(host)) {
      BrokerOptions options;
      options.node_id = "n";
      options.on_fatal = [this](Broker&, const Error& error) { fatal = error; };
      TcpOptions tcp;
      tcp.port = port;
      tcp.urls = std::move(urls);
      broker.emplace(process.runtime(), options,
                     std::make_unique<TcpTransporter>(process.loop(), process.network(), Logger(), tcp));
      broker->add_service(make_service(
          "where", [host](Service& s) { s.action("am_i", [host](Context&) { return std::string(host); }); }));
      starting = broker->start();
      starting.start([](void*) {}, nullptr);
    }
    ~Namesake() {
      process.kill();
      starting = {};
      broker.reset();
    }
    SimRuntime process;
    std::optional<Broker> broker;
    std::optional<Error> fatal;
    Task<void> starting;
  };

  TEST_CASE(
      "the second node with a taken id gives up, whichever has the lesser address; the first serves on") {
    for (const auto port : {std::uint16_t{5000}, std::uint16_t{7000}}) {
      CAPTURE(port);
      SimMesh mesh(Carrier::kTcp);
      Broker& client = mesh.add("client");
      mesh.start();
      Namesake first(mesh, "first", 6000);
      REQUIRE(mesh.until([&] { return mesh.sees("client", "n"); }, 5s));
      mesh.run_for(10s);
      Namesake second(mesh, "second", port);
      REQUIRE(mesh.until([&] { return second.fatal.has_value(); }, 2s));
      CHECK(second.fatal->type() == "DUPLICATE_NODE_ID");
      CHECK(second.fatal->message().find(":6000") != std::string::npos);  // Who has it.
      mesh.run_for(5s);
      CHECK_FALSE(second.broker->started());
      CHECK_FALSE(first.fatal.has_value());
      REQUIRE(mesh.until([&] { return mesh.sees("client", "n"); }, 5s));
      CHECK(mesh.await(client.call("where.am_i")).str() == "first");
    }
  }

  TEST_CASE("of two nodes that start together under one id one stays") {
    for (const auto port : {std::uint16_t{5000}, std::uint16_t{6000}, std::uint16_t{7000}}) {
      CAPTURE(port);
      SimMesh mesh(Carrier::kTcp);
      Namesake one(mesh, "one", 6000), other(mesh, "other", port);
      mesh.run_for(5s);
      CHECK(one.broker->started() != other.broker->started());
      CHECK(one.fatal.has_value() != other.fatal.has_value());
    }
  }

  TEST_CASE("a node that dials itself under a wrong name, and hears its own datagrams, is no namesake") {
    SimMesh mesh(Carrier::kTcp);
    Namesake alone(mesh, "alone", 6000, Value("tcp://alone:6000/somebody"));
    mesh.run_for(20s);
    CHECK(alone.broker->started());
    CHECK_FALSE(alone.fatal.has_value());
  }

  TEST_CASE("a node that leaves in good order is not gone unexpectedly, one that dies is") {
    for (const bool graceful : {true, false}) {
      SimMesh mesh(Carrier::kTcp);
      Broker& a = mesh.add("a");
      mesh.add("b").add_service(answering("math"));
      mesh.start();
      CHECK(mesh.await(a.call("math.get")).i64() == 1);
      Internal internal(a);
      if (graceful) {
        mesh.stop("b");
      } else {
        mesh.crash("b");
      }
      mesh.run_for(1s);
      CHECK(internal.count(graceful ? "$node.disconnected b unexpected=false"
                                    : "$node.disconnected b unexpected=true") == 1);
    }
  }
}

}  // namespace weft
