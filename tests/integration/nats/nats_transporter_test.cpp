#include "transporters/nats/nats_transporter.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/nats_server.h"
#include "tests/support/nats_world.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::NatsNode;
using test::NatsServer;
using test::NatsWorld;
using Lines = std::vector<std::string>;

TEST_SUITE("nats transporter") {
  TEST_CASE("targeted frames reach their node alone and in order, broadcasts reach all of the namespace") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "host.b-1", {.url = server.url()});
    NatsNode other(world, "host.b-1", {.url = server.url()}, "dev");
    REQUIRE((a.await_ready() && b.await_ready() && other.await_ready()));
    CHECK(a->traits().name == "NATS");
    CHECK(a->traits().is_bus);
    CHECK(a->traits().payload_bytes_max == 1048576);

    CHECK(a->broadcast(PacketType::kInfo, "i").ok());
    CHECK(b.await("INFO i"));  // A targeted one may overtake it.
    CHECK(a->send("host.b-1", PacketType::kInfo, "j").ok());
    CHECK(b.await("INFO j"));
    for (const char* payload : {"1", "2", "3"})
      CHECK(a->send("host.b-1", PacketType::kRequest, payload).ok());
    CHECK(b.await("REQ 3"));
    CHECK(a.await("INFO i"));
    CHECK(b->send("a", PacketType::kResponse, "r").ok());
    CHECK(a.await("RES r"));
    CHECK(b.listener.lines == Lines{"INFO i", "INFO j", "REQ 1", "REQ 2", "REQ 3"});
    CHECK(a.listener.lines == Lines{"INFO i", "RES r"});
    CHECK(other.listener.lines.empty());
  }

  TEST_CASE("each type of packet travels, targeted and broadcast, where there is such a form") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    for (const PacketType type :
         {PacketType::kRequest, PacketType::kResponse, PacketType::kEvent, PacketType::kDiscover,
          PacketType::kInfo, PacketType::kPing, PacketType::kPong}) {
      CHECK(a->send("b", type, "x").ok());
      CHECK(b.await(std::string(to_string(type)) + " x"));
    }
    for (const PacketType type : {PacketType::kDiscover, PacketType::kInfo, PacketType::kDisconnect,
                                  PacketType::kHeartbeat, PacketType::kPing}) {
      CHECK(a->broadcast(type, "y").ok());
      CHECK(b.await(std::string(to_string(type)) + " y"));
    }
  }

  TEST_CASE("the news of discovery keep their order among each other") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    Lines said;
    for (int i = 0; i < 200; ++i) {
      const PacketType type = std::array{PacketType::kInfo, PacketType::kDisconnect, PacketType::kHeartbeat,
                                         PacketType::kDiscover}[i % 4];
      CHECK(a->broadcast(type, std::to_string(i)).ok());
      said.push_back(std::string(to_string(type)) + " " + std::to_string(i));
    }
    CHECK(b.await(said.back()));
    CHECK(b.listener.lines == said);
  }

  TEST_CASE("the server knows the connection by the node's ID, or by the name that was chosen") {
    const NatsServer server({.monitor = true});
    NatsWorld world;
    NatsNode node(world, "node-1", {.url = server.url()}),
        other(world, "x", {.url = server.url(), .name = "mine"});
    REQUIRE((node.await_ready() && other.await_ready()));
    const std::string connections = server.ask_monitor("/connz");
    CHECK(connections.find("\"name\": \"node-1\"") != std::string::npos);
    CHECK(connections.find("\"name\": \"mine\"") != std::string::npos);
  }

  TEST_CASE("targeted packets keep their order over all types, and come once") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    Lines said;
    for (int i = 0; i < 500; ++i) {
      const PacketType type =
          std::array{PacketType::kEvent, PacketType::kRequest,  PacketType::kResponse, PacketType::kPing,
                     PacketType::kPong,  PacketType::kDiscover, PacketType::kInfo}[i % 7];
      CHECK(a->send("b", type, std::to_string(i)).ok());
      said.push_back(std::string(to_string(type)) + " " + std::to_string(i));
    }
    CHECK(b.await(said.back()));
    CHECK((b.listener.lines == said));
  }

  TEST_CASE("a request to a node that is not there is told of at once, with its correlation") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    CHECK(a->send("no.body", PacketType::kRequest, "1", "id-1").ok());
    CHECK(a->send("nobody", PacketType::kRequest, "2").ok());
    CHECK(a->send("b", PacketType::kRequest, "3", "id-3").ok());
    CHECK(a.await("undelivered no.body id-1"));
    CHECK(b.await("REQ 3"));
    REQUIRE(b.stop());
    for (int i = 0; i < 100; ++i) CHECK(a->send("b", PacketType::kRequest, "x", std::to_string(i)).ok());
    CHECK(a.await("undelivered b 99"));
    CHECK(a.listener.lines.size() == 101);
  }

  TEST_CASE("a probe tells of a node that is not there, and one that is there does not notice") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    a->probe("b");
    a->probe("b", "a pong of b");
    a->probe("gone");
    CHECK(a.await("undelivered gone "));
    CHECK(b.await("PONG a pong of b"));
    CHECK(a.listener.lines == Lines{"undelivered gone "});
    CHECK(b.listener.lines == Lines{"PONG a pong of b"});
  }

  TEST_CASE("a payload above the server's limit is refused with a clear error, and the connection stands") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    const std::string largest(1048576, 'x');
    const Result<> refused = a->send("b", PacketType::kRequest, largest + 'x');
    REQUIRE(!refused.ok());
    CHECK(refused.error().type() == "PACKET_TOO_LARGE");
    CHECK(!refused.error().retryable());
    CHECK(refused.error().message().find("1048576") != std::string::npos);
    CHECK(!a->broadcast(PacketType::kInfo, largest + 'x').ok());
    CHECK(a->send("b", PacketType::kRequest, largest).ok());
    CHECK(b.await("REQ " + largest));
  }

  TEST_CASE("names that cannot be part of a subject never reach the server") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()});
    REQUIRE(a.await_ready());
    for (const char* bad : {"", "a b", "x\r\nPUB MOL.INFO 0\r\n", "*", "b.>", "b."}) {
      CAPTURE(bad);
      const Result<> refused = a->send(bad, PacketType::kRequest, "1", "id");
      REQUIRE(!refused.ok());
      CHECK(refused.error().type() == "INVALID_SUBJECT");
      CHECK(!a->publish_balanced_request(bad, "1").ok());
      CHECK(!a->publish_balanced_event("g", bad, "1").ok());
      a->probe(bad);
    }
    // A correlation that cannot be a token is not asked about.
    CHECK(a->send("gone", PacketType::kRequest, "1", "a.b c").ok());
    CHECK(a->send("gone", PacketType::kRequest, "2", "fine").ok());
    CHECK(a.await("undelivered gone fine"));
    CHECK(a.listener.lines.size() == 1);
  }

  TEST_CASE("a node ID or namespace that NATS cannot carry is an error that names the rule") {
    NatsWorld world;
    const struct {
      const char* node;
      const char* name_space;
      const char* named;
    } rows[] = {
        {"a b", "", "nodeID 'a b'"}, {"a*", "", "nodeID 'a*'"},     {"a.>", "", "nodeID 'a.>'"},
        {"a.", "", "nodeID 'a.'"},   {"a..b", "", "nodeID 'a..b'"}, {"a", "d v", "namespace 'd v'"},
    };
    for (const auto& row : rows) {
      CAPTURE(row.named);
      NatsNode node(world, row.node, {}, row.name_space);
      CHECK(!node.started.has_value());  // Never from inside start().
      CHECK(!node.await_ready());
      REQUIRE(node.started.has_value());
      CHECK(node.started->error().error_class() == ErrorClass::kBrokerOptions);
      CHECK(node.started->error().message().find(row.named) != std::string::npos);
      CHECK(node.stop());
    }
    NatsNode node(world, "a", {.url = "nats://host:none"});
    CHECK(!node.await_ready());
    CHECK(node.started->error().error_class() == ErrorClass::kBrokerOptions);
  }

  TEST_CASE("what stop() finds queued still arrives, and nothing is heard afterwards") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    const std::string payload(100000, 'x');
    for (int i = 0; i < 50; ++i) CHECK(a->send("b", PacketType::kEvent, payload).ok());
    CHECK(a->broadcast(PacketType::kDisconnect, "bye").ok());
    REQUIRE(a.stop());
    CHECK(b.await("DISCONNECT bye"));
    CHECK(b.listener.count("EVENT " + payload) == 50);

    const std::size_t heard = a.listener.lines.size();
    CHECK(b->broadcast(PacketType::kInfo, "late").ok());
    CHECK(b.await("INFO late"));
    CHECK(a.listener.lines.size() == heard);
    const Result<> refused = a->send("b", PacketType::kEvent, "x");
    REQUIRE(!refused.ok());
    CHECK(refused.error().error_class() == ErrorClass::kBrokerDisconnected);
  }

  TEST_CASE("a stopped transporter starts again") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    REQUIRE(a.stop());
    a.start({"a", ""});
    REQUIRE(a.await_ready());
    CHECK(b->send("a", PacketType::kRequest, "again").ok());
    CHECK(a.await("REQ again"));
  }

  TEST_CASE("a listener may stop the transporter from inside an upcall") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    bool is_stopped = false;
    b.listener.on_each_frame = [&](const FrameView&) {
      b->stop([&](Result<>) {
        is_stopped = true;
        world.wake();
      });
    };
    for (const char* payload : {"1", "2", "3"}) CHECK(a->send("b", PacketType::kRequest, payload).ok());
    CHECK(world.await([&] { return is_stopped; }));
    CHECK(b.listener.lines == Lines{"REQ 1"});
  }

  TEST_CASE("large and small messages cross in both directions without loss") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    b.listener.on_each_frame = [&](const FrameView& frame) {
      CHECK(b->send("a", PacketType::kResponse, frame.payload).ok());
    };
    Lines wanted;
    for (int i = 0; i < 400; ++i) {
      const std::string payload = std::to_string(i) + std::string(i % 7 == 0 ? 150000 : i * 10, 'p');
      CHECK(a->send("b", PacketType::kRequest, payload).ok());
      wanted.push_back("RES " + payload);
    }
    CHECK(world.await([&] { return a.listener.lines.size() == wanted.size(); }));
    CHECK((a.listener.lines == wanted));
  }
}

}  // namespace
}  // namespace weft
