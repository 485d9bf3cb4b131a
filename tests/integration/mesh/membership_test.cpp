#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;
using Carrier = SimMesh::Carrier;

TEST_SUITE("membership over a bus") {
  TEST_CASE("a returning peer's advert is taken whole, though its number is not higher") {
    SimMesh mesh;
    Broker& w = mesh.add("w");
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.on_packet = [&](const ScriptedNode::Packet& packet) {
      if (packet.type != PacketType::kRequest) return;
      peer.send(PacketType::kResponse, Value{{"id", packet.body["id"]}, {"success", true}, {"data", 1}}, "w");
    };
    peer.announce(5, arr(service_info("a", {"x"})));
    mesh.run_for(20ms);
    peer.send(PacketType::kDisconnect);
    mesh.run_for(20ms);
    CHECK_FALSE(mesh.sees("w", "p"));
    peer.announce(5, arr(service_info("a", {"x"}), service_info("b", {"x"})));
    mesh.run_for(20ms);
    CHECK(mesh.node_row("w", "p")["seq"].i64() == 5);
    CHECK(mesh.await(w.call("b.x")).i64() == 1);
    peer.announce(6, arr(service_info("a", {"x"}), service_info("b", {"x"}), service_info("c", {"x"})));
    mesh.run_for(20ms);
    CHECK(mesh.await(w.call("c.x")).i64() == 1);
    // With the same number again nothing changes, and neither with a lower one.
    peer.announce(6, arr());
    peer.announce(3, arr());
    mesh.run_for(20ms);
    CHECK(mesh.await(w.call("c.x")).i64() == 1);
    // A new process of that name begins anew.
    peer.announce(1, arr(service_info("d", {"x"})), "i-2");
    mesh.run_for(20ms);
    CHECK(mesh.await(w.call("d.x")).i64() == 1);
    CHECK(refused(mesh, w, "a.x").type() == "SERVICE_NOT_AVAILABLE");
  }

  TEST_CASE("a silent node that beats again is asked for its advert, and comes back with that") {
    SimMesh mesh;
    Broker& w = mesh.add("w", {.heartbeat = {.interval = 1s, .timeout = 3s}});
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.announce(1, arr(service_info("a", {"x"})));
    for (int i = 0; i < 20; ++i) {  // While it beats it is there.
      mesh.run_for(1s);
      peer.send(PacketType::kHeartbeat, Value{{"cpu", 30}});
      CHECK(mesh.sees("w", "p"));
    }
    mesh.run_for(10ms);
    CHECK(mesh.node_row("w", "p")["cpu"].i64() == 30);
    Internal internal(w);
    auto waiting = w.try_call("a.x");
    const Duration silent_since = mesh.elapsed();
    const auto result = mesh.await(std::move(waiting), 20s);
    CHECK(result.error().error_class() == ErrorClass::kRequestRejected);
    CHECK(result.error().retryable());
    CHECK(mesh.elapsed() - silent_since >= 3s);
    CHECK(mesh.elapsed() - silent_since <= 7s);
    CHECK_FALSE(mesh.sees("w", "p"));
    CHECK(internal.take() ==
          Lines{"$node.disconnected p unexpected=true", "$services.changed localService=false"});

    peer.received.clear();
    peer.send(PacketType::kHeartbeat, Value{{"cpu", 5}});
    mesh.run_for(100ms);
    CHECK(peer.count(PacketType::kDiscover) == 1);
    CHECK_FALSE(mesh.sees("w", "p"));
    CHECK(refused(mesh, w, "a.x").type() == "SERVICE_NOT_AVAILABLE");
    peer.announce(1, arr(service_info("a", {"x"})));
    mesh.run_for(20ms);
    CHECK(mesh.sees("w", "p"));
    CHECK(internal.take() ==
          Lines{"$services.changed localService=false", "$node.connected p reconnected=true"});
    // So is one that was never heard of.
    ScriptedNode stranger(mesh, "s");
    stranger.send(PacketType::kHeartbeat, Value{{"cpu", 5}});
    mesh.run_for(100ms);
    CHECK(stranger.count(PacketType::kDiscover) == 1);
    CHECK(mesh.node_row("w", "s").is_null());
  }

  TEST_CASE("a node sends the load of its machine, and DISCOVER is answered with INFO") {
    SimMesh mesh;
    mesh.add("w", {.metadata = {{"zone", "eu"}}, .heartbeat = {.interval = 1s, .timeout = 3s}})
        .add_service(answering("math"));
    mesh.process("w").system().set_cpu_percent(42);
    ScriptedNode peer(mesh, "p");
    mesh.start();
    REQUIRE(mesh.until([&] { return peer.count(PacketType::kHeartbeat) > 1; }, 5s));
    const Value beat = peer.last(PacketType::kHeartbeat);
    CHECK(beat["cpu"].i64() == 42);
    CHECK_FALSE(beat.contains("seq"));
    peer.received.clear();
    peer.send(PacketType::kDiscover);
    mesh.run_for(20ms);
    const Value info = peer.last(PacketType::kInfo);
    CHECK(info["ver"].str() == "5");
    CHECK(info["sender"].str() == "w");
    CHECK(to_json(info["metadata"]) == R"({"zone":"eu"})");
    CHECK(to_json(info["config"]) == "{}");
    CHECK(info["seq"].i64() >= 1);
    CHECK(info["instanceID"].str().size() == 36);
    CHECK(info["ipList"].size() == 1);
    CHECK_FALSE(info.contains("port"));
    CHECK(info["client"]["type"].str() == "weft");
    REQUIRE(info["services"].size() == 2);
    CHECK(info["services"][0]["name"].str() == "$node");
    const Value& math = info["services"][1];
    CHECK(math["actions"].members()[0].key == "math.get");
    CHECK(math["actions"]["math.get"]["rawName"].str() == "get");
  }

  TEST_CASE(
      "packets of another protocol version, of nobody, or that cannot be read are dropped without harm") {
    SimMesh mesh;
    Broker& w = mesh.add("w");
    w.add_service(answering("math"));
    ScriptedNode peer(mesh, "p");
    mesh.start();
    Internal internal(w);
    for (const Value& ver : {Value("4"), Value(5), Value(), Value("")}) {
      peer.send(PacketType::kRequest, Value{{"ver", ver}, {"id", "1"}, {"action", "math.get"}}, "w");
      peer.send(PacketType::kInfo,
                Value{{"ver", ver}, {"seq", 1}, {"services", arr(service_info("evil", {"x"}))}});
    }
    for (const PacketType type : {PacketType::kRequest, PacketType::kResponse, PacketType::kEvent,
                                  PacketType::kInfo, PacketType::kHeartbeat, PacketType::kPing,
                                  PacketType::kPong, PacketType::kDiscover, PacketType::kDisconnect}) {
      for (const char* text :
           {"", "null", "[]", "{}", "5", "\"x\"", "{\"ver\":\"5\"", "\x01\xff\xfe garbage",
            R"({"ver":"5","sender":""})", R"({"ver":"5","sender":5})", R"({"ver":"5","sender":{}})"})
        peer.send_text(type, text, "w");
    }
    mesh.run_for(100ms);
    CHECK(peer.count(PacketType::kResponse) == 0);
    CHECK(mesh.node_row("w", "p").is_null());
    CHECK(internal.count("$transit.error type=\"failedProcessingPacket\"") > 20);
    peer.send(PacketType::kRequest, Value{{"id", "1"}, {"action", "math.get"}}, "w");
    mesh.run_for(100ms);
    CHECK(peer.count(PacketType::kResponse) == 1);
  }

  TEST_CASE("packets of another version are taken by a node that was told to") {
    SimMesh mesh;
    mesh.add("w", {.transit = {.disable_version_check = true}}).add_service(answering("math"));
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.send(PacketType::kRequest, Value{{"ver", "4"}, {"id", "1"}, {"action", "math.get"}}, "w");
    mesh.run_for(100ms);
    CHECK(peer.last(PacketType::kResponse)["data"].i64() == 1);
  }

  TEST_CASE("the second node with a taken id gives up; the first one serves on without a failed call") {
    for (const Duration age : {0ms, 500ms, 60'000ms}) {
      CAPTURE(age.count());
      SimMesh mesh;
      Broker& client = mesh.add("client");
      int served = 0, by_other = 0;
      Broker& first = mesh.add("n");
      first.add_service(
          make_service("work", [&](Service& s) { s.action("do", [&](Context&) { return ++served; }); }));
      mesh.start();
      mesh.run_for(age);
      std::optional<Error> fatal;
      SimRuntime process(mesh.world, mesh.world.fabric().add_host("other"));
      BrokerOptions options;
      options.node_id = "n";
      options.on_fatal = [&](Broker&, const Error& error) { fatal = error; };
      Broker second(process.runtime(), options, mesh.make_transporter(process));
      second.add_service(
          make_service("work", [&](Service& s) { s.action("do", [&](Context&) { return ++by_other; }); }));
      Task<void> starting = second.start();
      starting.start([](void*) {}, nullptr);
      const Duration begun = mesh.elapsed();
      std::vector<TryCall<Value>> calls;
      for (int i = 0; i < 100; ++i) {
        calls.push_back(client.try_call("work.do", {}, {.timeout = 5s}));
        mesh.run_for(20ms);
        if (fatal && i > 50) break;
      }
      REQUIRE(fatal.has_value());
      CHECK(mesh.elapsed() - begun <= 2s);
      CHECK(fatal->message().find("'n' is taken") != std::string::npos);
      for (auto& call : calls) CHECK(mesh.await(std::move(call)).ok());
      CHECK(served == static_cast<int>(calls.size()));
      CHECK(by_other == 0);
      process.kill();
      mesh.run_for(100ms);
      CHECK(mesh.await(client.call("work.do")).i64() == served);
      CHECK(first.started());
    }
  }

  TEST_CASE(
      "of two nodes that start together under one id one stays; without a handler the other just stops") {
    SimMesh mesh;
    std::vector<std::unique_ptr<SimRuntime>> processes;
    std::vector<std::unique_ptr<Broker>> brokers;
    std::vector<Task<void>> starting;
    for (int i = 0; i < 2; ++i) {
      processes.push_back(std::make_unique<SimRuntime>(mesh.world, mesh.world.fabric().add_host()));
      BrokerOptions options;
      options.node_id = "n";
      brokers.push_back(
          std::make_unique<Broker>(processes[i]->runtime(), options, mesh.make_transporter(*processes[i])));
    }
    for (auto& broker : brokers) starting.push_back(broker->start());
    for (Task<void>& task : starting) task.start([](void*) {}, nullptr);
    mesh.run_for(5s);
    CHECK(brokers[0]->started() != brokers[1]->started());
    for (auto& process : processes) process->kill();
    starting.clear();
    brokers.clear();
  }

  TEST_CASE("after the bus was away a node listens, announces itself anew and asks for the others") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Broker& b = mesh.add("b");
    a.add_service(answering("of-a", 1));
    b.add_service(answering("of-b", 2));
    mesh.start();
    Internal internal(a);
    mesh.bus->stop();
    mesh.run_for(2s);
    CHECK(mesh.await(a.try_call("of-b.get", {}, {.timeout = 1s})).error().error_class() ==
          ErrorClass::kBrokerDisconnected);
    b.add_service(answering("late", 3));
    mesh.run_for(2s);
    mesh.bus->start();
    mesh.run_for(7s);
    CHECK(internal.count("$transporter.connected wasReconnect=true") == 1);
    CHECK(internal.count("$transporter.error type=\"clientError\"") == 1);
    CHECK(mesh.await(a.call("late.get")).i64() == 3);
    CHECK(mesh.await(a.call("of-b.get")).i64() == 2);
    CHECK(mesh.await(b.call("of-a.get")).i64() == 1);
    CHECK(mesh.bus->client_count() == 2);
  }

  TEST_CASE("a node starts when the bus comes, and stops at once while it is away") {
    SimMesh mesh;
    mesh.bus->stop();
    Broker& a = mesh.add("a");
    Task<void> starting = a.start();
    bool ended = false;
    starting.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &ended);
    mesh.run_for(10s);
    CHECK_FALSE(ended);
    const Duration before = mesh.elapsed();
    mesh.await(a.stop());
    CHECK(mesh.elapsed() - before < 3s);
    CHECK(ended);
    CHECK_THROWS_AS(starting.take(), BrokerDisconnectedError);
    const auto events = mesh.world.events_run();
    mesh.run_for(1h);
    CHECK(mesh.world.events_run() == events);  // Nothing is tried any more.

    Broker& b = mesh.add("b");
    Task<void> second = b.start();
    bool started = false;
    second.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &started);
    mesh.run_for(10s);
    mesh.bus->start();
    mesh.run_for(5s);
    CHECK(started);
    CHECK(b.started());
    mesh.bus->stop();
    mesh.run_for(1s);
    const Duration again = mesh.elapsed();
    mesh.await(b.stop());
    CHECK(mesh.elapsed() - again < 3s);
  }

  TEST_CASE("a service that is destroyed goes everywhere, and may come back with another answer") {
    for (const Carrier carrier : {Carrier::kMemory, Carrier::kBus, Carrier::kTcp}) {
      CAPTURE(static_cast<int>(carrier));
      SimMesh mesh(carrier);
      Broker& a = mesh.add("a");
      Broker& b = mesh.add("b");
      b.add_service(answering("tmp", 1));
      mesh.start();
      CHECK(mesh.await(a.call("tmp.get")).i64() == 1);
      const std::int64_t seq = mesh.node_row("a", "b")["seq"].i64();
      mesh.await(b.destroy_service("tmp"));
      CHECK(b.local_service("tmp") == nullptr);
      CHECK(refused(mesh, b, "tmp.get").type() == "SERVICE_NOT_AVAILABLE");
      mesh.run_for(2s);
      CHECK(refused(mesh, a, "tmp.get").code() == 404);
      CHECK(mesh.node_row("a", "b")["seq"].i64() > seq);
      b.add_service(answering("tmp", 2));
      mesh.run_for(2s);
      CHECK(mesh.await(a.call("tmp.get")).i64() == 2);
      CHECK_THROWS_AS(mesh.await(b.destroy_service("no-such")), ServiceNotFoundError);
    }
  }

  TEST_CASE("the internal events of a node's life, in order and with their payloads") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    a.add_service(answering("math"));
    Internal internal(a);
    Lines services_heard;
    a.add_service(make_service("watcher", [&](Service& s) {
      s.event("$node.*", [&](Context& c) { services_heard.push_back(std::string(c.event())); });
    }));
    mesh.start();
    CHECK(internal.take() == Lines{"$transporter.connected wasReconnect=false",
                                   "$services.changed localService=true",
                                   "$services.changed localService=true",
                                   "$services.changed localService=true", "$broker.started"});
    Broker& b = mesh.add("b");
    b.add_service(answering("other"));
    mesh.start();
    Lines lines = internal.take();
    REQUIRE(lines.size() >= 2);
    CHECK(lines[0] == "$services.changed localService=false");
    CHECK(lines[1] == "$node.connected b reconnected=false");
    for (std::size_t i = 2; i < lines.size(); ++i)
      CHECK((lines[i] == "$services.changed localService=false" || lines[i] == "$node.updated b"));
    const auto connected = std::find_if(internal.payloads.begin(), internal.payloads.end(),
                                        [](const Value& payload) { return payload.contains("reconnected"); });
    REQUIRE(connected != internal.payloads.end());
    const Value& node = std::as_const(*connected)["node"];
    CHECK(node["id"].str() == "b");
    CHECK(node["available"] == Value(true));
    CHECK(node["services"].is_array());
    CHECK(node["instanceID"].str().size() == 36);

    internal.payloads.clear();
    CHECK(mesh.await(a.ping("b")).has_value());
    CHECK(internal.take() == Lines{"$node.pong"});
    const Value& pong = internal.payloads.back();
    for (const char* key : {"nodeID", "elapsedTime", "timeDiff", "id"}) CHECK(pong.contains(key));
    CHECK(pong["nodeID"].str() == "b");

    mesh.stop("b");
    mesh.run_for(50ms);
    lines = internal.take();
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] == "$services.changed localService=false");  // It offers nothing any more …
    CHECK(lines[1] == "$node.updated b");
    CHECK(lines[2] == "$node.disconnected b unexpected=false");  // … and then it leaves.
    CHECK(lines[3] == "$services.changed localService=false");
    mesh.await(a.stop());
    CHECK(internal.take() == Lines{"$transporter.disconnected graceFul=true", "$broker.stopped"});
    CHECK(services_heard.size() >= 4);
    CHECK(services_heard.front() == "$node.connected");
    CHECK(services_heard.back() == "$node.disconnected");
  }

  TEST_CASE("internal events stay on their node") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.announce(1, arr(service_info("spy", {}, {"$**", "**"})));
    REQUIRE(mesh.until([&] { return mesh.sees("a", "p"); }));
    a.add_service(answering("math"));
    mesh.add("b");
    mesh.start();
    mesh.stop("b");
    mesh.stop("a");
    CHECK(peer.count(PacketType::kEvent) == 0);
  }

  TEST_CASE("a ping measures the way to a node, or tells that there is none") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    mesh.add("b");
    mesh.add("c");
    ScriptedNode peer(mesh, "mute");
    mesh.start();
    peer.announce(1);
    REQUIRE(mesh.until([&] { return mesh.sees("a", "mute"); }));
    mesh.world.fabric().find_host("b")->set_wall_skew(5s);
    const auto pong = mesh.await(a.ping("b"));
    REQUIRE(pong.has_value());
    CHECK(pong->node_id == "b");
    CHECK(pong->elapsed_ms >= 0);
    CHECK(pong->elapsed_ms < 20);
    CHECK(std::abs(pong->time_diff_ms + 5000) < 20);
    CHECK_FALSE(mesh.await(a.ping("a")).has_value());
    CHECK_FALSE(mesh.await(a.ping("nobody")).has_value());
    const Duration before = mesh.elapsed();
    CHECK_FALSE(mesh.await(a.ping("mute", 300ms)).has_value());
    CHECK(mesh.elapsed() - before >= 300ms);
    CHECK(mesh.elapsed() - before < 310ms);
    const auto all = mesh.await(a.ping_all({}, 300ms));
    REQUIRE(all.size() == 3);
    CHECK(all[0].first == "b");
    CHECK(all[0].second.has_value());
    CHECK(all[1].second.has_value());
    CHECK(all[2].first == "mute");
    CHECK_FALSE(all[2].second.has_value());
    const auto some = mesh.await(a.ping_all({"c", "nobody"}, 300ms));
    REQUIRE(some.size() == 2);
    CHECK(some[0].second.has_value());
    CHECK_FALSE(some[1].second.has_value());
    // A ping of a foreign node is answered with what it said.
    peer.send(PacketType::kPing, Value{{"id", "77"}, {"time", 123456}}, "a");
    mesh.run_for(50ms);
    const Value answer = peer.last(PacketType::kPong);
    CHECK(answer["id"].str() == "77");
    CHECK(answer["time"].i64() == 123456);
    CHECK(answer["arrived"].is_integer());
  }

  TEST_CASE("waiting for services ends when they are there, or at its limit with what is missing") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Broker& b = mesh.add("b");
    mesh.start();
    mesh.await(a.wait_for_services({}));
    const Duration before = mesh.elapsed();
    try {
      mesh.await(a.wait_for_services({"$node", "late"}, 300ms));
      FAIL("it did not throw");
    } catch (const ServerError& error) {
      CHECK(error.code() == 500);
      CHECK(error.type() == "WAITFOR_SERVICES");
      CHECK(to_json(error.data()) ==
            R"({"services":["$node","late"],"statuses":[{"name":"$node","available":true},)"
            R"({"name":"late","available":false}]})");
    }
    CHECK(mesh.elapsed() - before >= 300ms);
    CHECK(mesh.elapsed() - before <= 400ms);
    // No limit.
    Task<void> waiting = a.wait_for_services({"late"});
    bool done = false;
    waiting.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &done);
    mesh.run_for(2500ms);
    CHECK_FALSE(done);
    b.add_service(answering("late"));
    mesh.run_for(100ms);
    CHECK(done);
    mesh.await(a.wait_for_services({"late", "late"}), 1ms);
    // One of several versions is enough.
    auto v2 = answering("users");
    v2->version(2);
    b.add_service(v2);
    mesh.await(a.wait_for_services("v1.users|v2.users", 1s));
    CHECK_THROWS_AS(mesh.await(a.wait_for_services("users", 100ms)), ServerError);
    CHECK_THROWS_AS(mesh.await(a.wait_for_services("v1.users|v3.users", 100ms)), ServerError);
  }

  TEST_CASE("whoever waits for a node that stops is told") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    ScriptedNode peer(mesh, "mute");
    mesh.start();
    peer.announce(1);
    mesh.run_for(50ms);
    Task<void> waiting = a.wait_for_services("never");
    bool woken = false;
    waiting.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &woken);
    auto pinging = a.ping("mute", 1h);
    bool answered = false;
    pinging.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &answered);
    mesh.await(a.stop());
    CHECK(woken);
    CHECK_THROWS_AS(waiting.take(), BrokerDisconnectedError);
    CHECK(answered);
    CHECK_FALSE(pinging.take().has_value());
  }

  TEST_CASE("nodes of another namespace, and offline ones after ten minutes, are not there") {
    SimMesh mesh;
    mesh.add("a");
    mesh.add("b", {.name_space = "dev"});
    Task<void> a = mesh["a"].start();
    Task<void> b = mesh["b"].start();
    a.start([](void*) {}, nullptr);
    b.start([](void*) {}, nullptr);
    mesh.run_for(5s);
    CHECK(mesh.node_row("a", "b").is_null());
    CHECK(mesh.node_row("b", "a").is_null());
    ScriptedNode peer(mesh, "p");
    peer.announce(1);
    mesh.run_for(1s);
    peer.send(PacketType::kDisconnect);
    mesh.run_for(9min);
    CHECK(mesh.node_row("a", "p")["available"] == Value(false));
    CHECK_FALSE(mesh.node_row("a", "p")["offlineSince"].is_null());
    mesh.run_for(2min);
    CHECK(mesh.node_row("a", "p").is_null());
  }

  TEST_CASE("no more nodes than nodes_max are taken in") {
    SimMesh mesh;
    mesh.add("a", {.registry = {.nodes_max = 4}});
    ScriptedNode peer(mesh, "p");
    mesh.start();
    for (int i = 0; i < 50; ++i) {
      const std::string sender = "n" + std::to_string(i);
      peer.send(PacketType::kInfo,
                Value{{"sender", sender}, {"seq", 1}, {"services", arr()}, {"instanceID", sender}});
    }
    mesh.run_for(50ms);
    CHECK(mesh["a"].node_list().size() == 4);
  }

  TEST_CASE("the node with the least load is chosen; an unknown load only when none is known") {
    SimMesh mesh;
    Broker& a = mesh.add("a", {.registry = {.strategy = "CpuUsage"}});
    std::vector<std::unique_ptr<ScriptedNode>> peers;
    std::map<std::string, int> taken;
    mesh.start();
    for (const char* id : {"p", "q", "r"}) {
      peers.push_back(std::make_unique<ScriptedNode>(mesh, id));
      ScriptedNode& peer = *peers.back();
      peer.on_packet = [&peer, &taken, id](const ScriptedNode::Packet& packet) {
        if (packet.type != PacketType::kRequest) return;
        ++taken[id];
        peer.send(PacketType::kResponse, Value{{"id", packet.body["id"]}, {"success", true}, {"data", 1}},
                  "a");
      };
      peer.announce(1, arr(service_info("s", {"x"})));
    }
    mesh.run_for(50ms);
    const auto with = [&](const Value& p, const Value& q, const Value& r) {
      taken.clear();
      const Value loads[] = {p, q, r};
      for (std::size_t i = 0; i < 3; ++i) peers[i]->send(PacketType::kHeartbeat, Value{{"cpu", loads[i]}});
      mesh.run_for(20ms);
      for (int i = 0; i < 60; ++i) mesh.await(a.call("s.x"));
      return taken;
    };
    using Taken = std::map<std::string, int>;
    CHECK(with(5, 50, nullptr) == Taken{{"p", 60}});
    CHECK(with(60, 30, nullptr) == Taken{{"q", 60}});
    CHECK(with(nullptr, nullptr, nullptr).size() == 3);
  }
}

}  // namespace weft
