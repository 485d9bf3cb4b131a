#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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

// A port that takes connections and never says a word, and counts who came.
class SilentServer {
 public:
  SilentServer() {
    descriptor_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(descriptor_, 64) == 0);
    REQUIRE(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    url_ = "nats://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentServer() {
    for (const int guest : guests_) close(guest);
    close(descriptor_);
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  // How many have come so far.
  [[nodiscard]] std::size_t guests() {
    for (int guest = 0; (guest = accept(descriptor_, nullptr, nullptr)) >= 0;) guests_.push_back(guest);
    return guests_.size();
  }

 private:
  int descriptor_ = -1;
  std::string url_;
  std::vector<int> guests_;
};

int connections(const NatsServer& server) {
  const std::string state = server.ask_monitor("/connz");
  const std::string key = "\"num_connections\": ";
  const std::size_t at = state.find(key);
  return at == std::string::npos ? -1 : std::atoi(state.c_str() + at + key.size());
}

Duration elapsed_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::steady_clock::now() - start;
}

TEST_SUITE("nats reconnect") {
  TEST_CASE("after a restart of the server all subscriptions stand again, and the listener is told") {
    NatsServer server({.monitor = true});
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    const std::string actions[] = {"math.add"};
    b->subscribe_balanced(actions, {});

    for (std::size_t round = 1; round <= 3; ++round) {
      CAPTURE(round);
      server.kill();
      CHECK(world.await([&] {
        return a.listener.count("disconnected") == round && b.listener.count("disconnected") == round;
      }));
      const Result<> refused = a->send("b", PacketType::kRequest, "lost");
      REQUIRE(!refused.ok());
      CHECK(refused.error().error_class() == ErrorClass::kBrokerDisconnected);
      CHECK(refused.error().retryable());
      CHECK(!a->broadcast(PacketType::kInfo, "lost").ok());
      a->probe("b");

      server.start();
      CHECK(world.await(
          [&] {
            return a.listener.count("reconnected") == round && b.listener.count("reconnected") == round;
          },
          7s));
      a.listener.lines.clear();
      b.listener.lines.clear();
      for (std::size_t i = 0; i < round; ++i) {
        a.listener.lines.emplace_back("disconnected");
        b.listener.lines.emplace_back("disconnected");
        a.listener.lines.emplace_back("reconnected");
        b.listener.lines.emplace_back("reconnected");
      }
      const std::string tag = std::to_string(round);
      CHECK(a->send("b", PacketType::kRequest, "q" + tag).ok());
      CHECK(b.await("REQ q" + tag));
      CHECK(b->send("a", PacketType::kResponse, "r" + tag).ok());
      CHECK(a.await("RES r" + tag));
      CHECK(a->broadcast(PacketType::kInfo, "i" + tag).ok());
      CHECK(b.await("INFO i" + tag));
      CHECK(a->publish_balanced_request("math.add", "balanced" + tag).ok());
      CHECK(b.await("REQ balanced" + tag));
      CHECK(a->send("gone", PacketType::kRequest, "x", "id" + tag).ok());
      CHECK(a.await("undelivered gone id" + tag));
      CHECK(connections(server) == 2);
    }
  }

  TEST_CASE("a bus that is away at the start is waited for") {
    NatsServer server;
    server.kill();
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()});
    world.turn(3);
    CHECK(!a.started.has_value());
    server.start();
    CHECK(a.await_ready());
    CHECK(a.listener.lines.empty());  // The first connect is start()'s.
    CHECK(a->send("a", PacketType::kRequest, "x").ok());
    CHECK(a.await("REQ x"));
  }

  TEST_CASE("stop() ends the waiting for a bus that never came") {
    NatsServer server;
    server.kill();
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()});
    const auto start = std::chrono::steady_clock::now();
    CHECK(a.stop());
    CHECK(elapsed_since(start) < 1s);
    REQUIRE(a.started.has_value());
    CHECK(!a.started->ok());
  }

  TEST_CASE("stop() is quick in the middle of an attempt, and nothing is attempted afterwards") {
    SilentServer silent;
    NatsWorld world;
    NatsNode a(world, "a", {.url = silent.url(), .connect_timeout = 300ms});
    CHECK(world.await([&] {
      world.loop.post([&] { world.wake(); });
      return silent.guests() == 1;
    }));
    const auto start = std::chrono::steady_clock::now();
    CHECK(a.stop());
    CHECK(elapsed_since(start) < 200ms);
    // The worker's attempt ends by itself; a full round of attempts fits into this wait.
    bool is_over = false;
    Timer timer;
    timer.set_after(world.loop, 700ms, [&] {
      is_over = true;
      world.wake();
    });
    CHECK(world.await([&] { return is_over; }));
    CHECK(silent.guests() == 1);
    CHECK(a.listener.lines.empty());
  }

  TEST_CASE("stop() with the server killed is done within two seconds, and nothing is heard afterwards") {
    NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    server.kill();
    CHECK(a.await("disconnected"));
    const auto start = std::chrono::steady_clock::now();
    CHECK(a.stop(2s));
    CHECK(elapsed_since(start) < 1s);
    server.start();
    CHECK(b.await("reconnected"));
    CHECK(a.listener.lines == std::vector<std::string>{"disconnected"});
  }

  TEST_CASE("stop() with the server frozen is done within two seconds") {
    NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()});
    REQUIRE(a.await_ready());
    server.freeze();
    CHECK(a->broadcast(PacketType::kInfo, std::string(100000, 'x')).ok());
    const auto start = std::chrono::steady_clock::now();
    CHECK(a.stop(3s));
    CHECK(elapsed_since(start) < 2s);
    server.thaw();
  }

  TEST_CASE("a server that is frozen is noticed, and another one is used") {
    NatsServer first, second;
    NatsWorld world;
    NatsNode a(world, "a",
               {.url = first.url() + "," + second.url(), .connect_timeout = 200ms, .ping_interval = 100ms});
    NatsNode b(world, "b", {.url = second.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    first.freeze();
    CHECK(a.await("disconnected"));
    CHECK(a.await("reconnected"));
    CHECK(a->send("b", PacketType::kRequest, "x").ok());
    CHECK(b.await("REQ x"));
    first.thaw();
  }

  TEST_CASE("the first server that works is used, and the others are left alone while it does") {
    SilentServer dead;
    NatsServer live({.monitor = true});
    NatsWorld world;
    NatsNode a(world, "a",
               {.url = dead.url() + "," + live.url(), .connect_timeout = 300ms, .ping_interval = 200ms});
    REQUIRE(a.await_ready());
    CHECK(dead.guests() == 1);
    CHECK(connections(live) == 1);
    for (int i = 0; i < 20; ++i) {
      CHECK(a->send("a", PacketType::kRequest, std::to_string(i)).ok());
      CHECK(a.await("REQ " + std::to_string(i)));
    }
    CHECK(dead.guests() == 1);
    CHECK(connections(live) == 1);
  }

  TEST_CASE("attempts that fail leave no descriptor behind") {
    NatsServer server;
    server.kill();
    NatsWorld world;
    {
      SilentServer silent;
      const int before = test::open_descriptors();
      {
        NatsNode a(
            world, "a",
            {.url = silent.url() + "," + server.url(), .connect_timeout = 20ms, .reconnect_wait_max = 5ms});
        CHECK(world.await([&] {
          world.loop.post([&] { world.wake(); });
          return silent.guests() >= 8;
        }));
        server.start();
        REQUIRE(a.await_ready());
        REQUIRE(a.stop());
      }
      const int guests = static_cast<int>(silent.guests());  // Their ends are in this process too.
      CHECK(test::open_descriptors() - guests == before);
    }
  }

  TEST_CASE("a transporter may be destroyed at any time without stop()") {
    NatsServer server;
    NatsWorld world;
    world.turn(2);
    { NatsNode connecting(world, "a", {.url = server.url()}); }
    {
      NatsNode ready(world, "a", {.url = server.url()});
      REQUIRE(ready.await_ready());
      CHECK(ready->send("a", PacketType::kRequest, "x").ok());
    }
    {
      NatsNode away(world, "a", {.url = server.url()});
      REQUIRE(away.await_ready());
      server.kill();
      CHECK(away.await("disconnected"));
    }
    world.turn(3);
    server.start();
    NatsNode last(world, "a", {.url = server.url()});
    CHECK(last.await_ready());
  }

  TEST_CASE("frames that wait for a server that does not read are bounded") {
    NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url(), .queue_bytes_max = 4UL << 20});
    REQUIRE(a.await_ready());
    server.freeze();
    const std::string payload(200000, 'x');
    Result<> outcome;
    std::size_t taken = 0;
    while (taken < 1000 && (outcome = a->send("b", PacketType::kEvent, payload)).ok()) {
      ++taken;
      world.turn();
    }
    REQUIRE(!outcome.ok());
    CHECK(outcome.error().error_class() == ErrorClass::kQueueIsFull);
    CHECK(taken * payload.size() < (16UL << 20));  // Beside the queue there are the sockets' buffers.
    server.thaw();
    CHECK(world.await([&] {
      world.loop.post([&] { world.wake(); });
      return a->send("a", PacketType::kEvent, "through").ok();
    }));
    CHECK(a.await("EVENT through"));
  }
}

}  // namespace
}  // namespace weft
