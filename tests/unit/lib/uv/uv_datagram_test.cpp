#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/uv_world.h"

namespace weft {
namespace {

using test::UvWorld;

struct Mailbox {
  explicit Mailbox(UvWorld& owner) : world(owner) {}
  Network::DatagramCallback callback() {
    return [this](BytesView bytes, const SocketAddress& from) {
      texts.emplace_back(bytes);
      last_from = from;
      world.wake();
    };
  }
  UvWorld& world;
  std::vector<std::string> texts;
  SocketAddress last_from;
};

TEST_SUITE("uv datagrams") {
  TEST_CASE("a datagram reaches its socket with the sender's address") {
    UvWorld world;
    Mailbox box(world);
    DatagramOptions options;
    options.bind = {"127.0.0.1", 0};
    auto receiver = world.network.open_datagram(options, box.callback());
    auto sender = world.network.open_datagram(options, [](BytesView, const SocketAddress&) {});
    REQUIRE(receiver.ok());
    REQUIRE(sender.ok());
    (*sender)->send("hello", (*receiver)->local_address());
    REQUIRE(world.await([&] { return box.texts.size() == 1; }));
    CHECK(box.texts[0] == "hello");
    CHECK(box.last_from == (*sender)->local_address());
    (*sender)->send("lost", {"not numeric", 1});
  }

  TEST_CASE("every socket of a shared port receives each multicast datagram, on loopback alone") {
    UvWorld world;
    Mailbox first(world);
    Mailbox second(world);
    DatagramOptions options;
    options.multicast_group = "239.0.0.0";
    options.interface_address = "127.0.0.1";
    auto one = world.network.open_datagram(options, first.callback());
    REQUIRE(one.ok());
    options.bind.port = (*one)->local_address().port;
    auto two = world.network.open_datagram(options, second.callback());
    REQUIRE(two.ok());
    (*one)->send("to all", {"239.0.0.0", options.bind.port});
    REQUIRE(world.await([&] { return first.texts.size() == 1 && second.texts.size() == 1; }));
    CHECK(second.texts[0] == "to all");
    CHECK(second.last_from.host == "127.0.0.1");
  }

  TEST_CASE("a broadcast to 127.255.255.255 reaches every socket of a shared port") {
    UvWorld world;
    Mailbox first(world);
    Mailbox second(world);
    DatagramOptions options;
    options.broadcast = true;
    auto one = world.network.open_datagram(options, first.callback());
    REQUIRE(one.ok());
    options.bind.port = (*one)->local_address().port;
    auto two = world.network.open_datagram(options, second.callback());
    REQUIRE(two.ok());
    (*two)->send("to all", {"127.255.255.255", options.bind.port});
    REQUIRE(world.await([&] { return first.texts.size() == 1 && second.texts.size() == 1; }));
  }

  TEST_CASE("a socket may be destroyed from inside its callback") {
    UvWorld world;
    std::unique_ptr<DatagramSocket> receiver;
    int received = 0;
    DatagramOptions options;
    options.bind = {"127.0.0.1", 0};
    receiver = std::move(*world.network.open_datagram(options, [&](BytesView, const SocketAddress&) {
      ++received;
      receiver.reset();
      world.wake();
    }));
    auto sender = world.network.open_datagram(options, [](BytesView, const SocketAddress&) {});
    const SocketAddress to = receiver->local_address();
    (*sender)->send("a", to);
    (*sender)->send("b", to);
    REQUIRE(world.await([&] { return receiver == nullptr; }));
    world.turn(2);
    CHECK(received == 1);
  }

  TEST_CASE("a port held by someone who does not share it is an error") {
    UvWorld world;
    DatagramOptions options;
    options.bind = {"127.0.0.1", 0};
    options.reuse_address = false;
    auto one = world.network.open_datagram(options, [](BytesView, const SocketAddress&) {});
    options.bind = (*one)->local_address();
    auto two = world.network.open_datagram(options, [](BytesView, const SocketAddress&) {});
    REQUIRE_FALSE(two.ok());
    CHECK(two.error().type() == "EADDRINUSE");
  }
}

TEST_SUITE("uv network") {
  TEST_CASE("the interfaces include loopback with its broadcast address") {
    UvWorld world;
    bool found = false;
    for (const InterfaceAddress& each : world.network.interfaces()) {
      if (each.address != "127.0.0.1") continue;
      found = true;
      CHECK(each.is_loopback);
      CHECK(each.is_ipv4);
      CHECK(each.broadcast == "127.255.255.255");
    }
    CHECK(found);
    CHECK_FALSE(world.network.hostname().empty());
  }
}

}  // namespace
}  // namespace weft
