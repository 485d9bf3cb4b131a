#include "transporters/tcp/tcp_transporter.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/uv_world.h"
#include "transporters/tcp/frame.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::StreamLog;
using test::UvWorld;
using Lines = std::vector<std::string>;

TcpOptions local_options() {
  TcpOptions options;
  options.host = "127.0.0.1";
  options.udp_discovery = false;
  return options;
}

// A started transporter and what it told.
struct Node final : Transporter::Listener {
  Node(UvWorld& owner, std::string node_id, TcpOptions options = local_options(), std::string name_space = {})
      : world(owner),
        id(std::move(node_id)),
        transporter(
            std::make_unique<TcpTransporter>(world.loop, world.network, Logger(), std::move(options))) {
    transporter->start({id, std::move(name_space)}, *this, [this](Result<> outcome) {
      CHECK(lines.empty());
      started = true;
      if (!outcome.ok()) error = outcome.error().message();
      world.wake();
    });
    CHECK_FALSE(started);
    REQUIRE(world.await([this] { return started; }));
  }

  void greet() { transporter->set_greeting("hello from " + id); }
  void knows(const Node& other) {
    transporter->learn_address(other.id, {"127.0.0.1", other.transporter->listen_address().port});
  }
  bool send(const std::string& node, std::string_view text, PacketType type = PacketType::kEvent) {
    return transporter->send(node, type, text, {}).ok();
  }
  [[nodiscard]] std::size_t count(std::string_view line) const {
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
  }
  [[nodiscard]] bool heard(std::string_view line) const { return count(line) > 0; }

  void on_frame(const FrameView& frame) override {
    const volatile char last_of_padding = frame.payload.data()[frame.payload.size() + kReadPadding - 1];
    static_cast<void>(last_of_padding);
    last_host = frame.remote_host;
    constexpr std::string_view kGreeting = "hello from ";
    if (frame.payload.starts_with(kGreeting))
      CHECK(frame.link->speaks_for(frame.payload.substr(kGreeting.size())));
    note(std::string(to_string(frame.type)) + " " + std::string(frame.payload));
    if (during_frame) during_frame();
  }
  void on_reconnected() override { note("reconnected"); }
  void on_disconnected(const Error&) override { note("disconnected"); }
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool) override {
    note("sighted " + std::string(node) + " " + address.to_string());
    if (during_sighting) during_sighting();
  }
  void on_node_lost(std::string_view node, const Error& reason) override {
    note("lost " + std::string(node) + " " + std::string(reason.type()));
  }
  void on_undelivered(std::string_view, std::string_view) override { note("undelivered"); }

  void note(std::string line) {
    CHECK(started);
    CHECK_FALSE(stopped);
    lines.push_back(std::move(line));
    world.wake();
  }
  void stop() {
    transporter->stop([this](Result<> outcome) {
      CHECK(outcome.ok());
      stopped = true;
      world.wake();
    });
    CHECK_FALSE(stopped);
  }

  UvWorld& world;
  const std::string id;
  std::unique_ptr<TcpTransporter> transporter;
  Lines lines;
  std::string last_host;
  std::string error;
  bool started = false;
  bool stopped = false;
  UniqueFunction<void()> during_frame;
  UniqueFunction<void()> during_sighting;
};

// A peer that writes bytes of its own making.
struct RawPeer {
  RawPeer(UvWorld& world, const Node& node) : log(world) {
    stream = world.network.connect({"127.0.0.1", node.transporter->listen_address().port}, {});
    stream->set_handler(log);
  }
  void write(std::string_view bytes) { CHECK(stream->write(bytes, {})); }
  StreamLog log;
  std::unique_ptr<Stream> stream;
};

std::string frame(PacketType type, std::string_view payload) {
  const FrameHeader header = make_frame_header(type, payload.size());
  return std::string(header.data(), header.size()) + std::string(payload);
}

std::uint16_t free_udp_port(UvWorld& world) {
  auto socket = world.network.open_datagram({}, [](BytesView, const SocketAddress&) {});
  return (*socket)->local_address().port;
}

TEST_SUITE("tcp transporter") {
  TEST_CASE("two nodes exchange frames, each over its own connection, greeting first") {
    UvWorld world;
    Node a(world, "a"), b(world, "b");
    a.greet();
    b.greet();
    a.knows(b);
    b.knows(a);
    CHECK(a.send("b", "question", PacketType::kRequest));
    REQUIRE(world.await([&] { return b.lines.size() == 2; }));
    CHECK(b.lines == Lines{"GOSSIP_HELLO hello from a", "REQ question"});
    CHECK(b.last_host == "127.0.0.1");
    CHECK(b.send("a", "answer", PacketType::kResponse));
    REQUIRE(world.await([&] { return a.lines.size() == 2; }));
    CHECK(a.lines == Lines{"GOSSIP_HELLO hello from b", "RES answer"});
    CHECK(a.transporter->connection_count() == 1);
    CHECK(a.transporter->accepted_count() == 1);
  }

  TEST_CASE("traits say that this is no bus and what a payload may weigh") {
    UvWorld world;
    Node a(world, "a");
    const Transporter::Traits traits = a.transporter->traits();
    CHECK(traits.name == "TCP");
    CHECK_FALSE(traits.is_bus);
    CHECK(traits.payload_bytes_max == (1 << 20) - (64 << 10) - kFrameHeaderBytes);
    CHECK_FALSE(a.transporter->broadcast(PacketType::kInfo, "x").ok());
    CHECK_FALSE(a.transporter->send("b", PacketType::kInfo, "x", {}).ok());
  }

  TEST_CASE("a payload of the largest size arrives, one byte more is refused and says so") {
    UvWorld world;
    Node a(world, "a"), b(world, "b");
    a.greet();
    a.knows(b);
    const std::size_t limit = a.transporter->traits().payload_bytes_max;
    const std::string payload(limit, 'x');
    CHECK(a.send("b", payload));
    const auto refused = a.transporter->send("b", PacketType::kEvent, payload + "x", {});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().type() == "PACKET_TOO_LARGE");
    CHECK_FALSE(refused.error().retryable());
    CHECK(refused.error().message().find(std::to_string(limit + 1)) != std::string::npos);
    REQUIRE(world.await([&] { return b.heard("EVENT " + payload); }));
  }

  TEST_CASE("300 frames of 4 KiB in one write arrive in order and the connection stays") {
    UvWorld world;
    Node b(world, "b");
    RawPeer peer(world, b);
    std::string bytes;
    Lines expected;
    for (int i = 0; i < 300; ++i) {
      std::string payload = std::to_string(i) + ":";
      payload.resize(4096, 'x');
      bytes += frame(PacketType::kEvent, payload);
      expected.push_back("EVENT " + payload);
    }
    peer.write(bytes);
    REQUIRE(world.await([&] { return b.lines.size() == 300; }));
    CHECK(b.lines == expected);
    CHECK_FALSE(peer.log.closed.has_value());
    CHECK(b.transporter->accepted_count() == 1);
  }

  TEST_CASE("the recorded robustness cases end at least as well as recorded") {
    const std::string hello = frame(PacketType::kGossipHello, "{}");
    const std::string ping = frame(PacketType::kPing, "");
    std::string bad_check = hello;
    bad_check[0] ^= 0x55;
    const auto header = [](std::uint32_t length, int type) {
      std::string bytes(6, '\0');
      for (std::size_t i = 0; i < 4; ++i) bytes[1 + i] = static_cast<char>(length >> (24 - 8 * i) & 0xff);
      bytes[5] = static_cast<char>(type);
      for (std::size_t i = 1; i < 6; ++i) bytes[0] = static_cast<char>(bytes[0] ^ bytes[i]);
      return bytes;
    };
    const std::size_t mib = 1 << 20;
    struct Row {
      const char* input;
      std::string bytes;
      bool closes;
      std::size_t frames;
    };
    const std::vector<Row> rows = {
        {"type 9", header(8, 9) + "{}", true, 0},
        {"type 0", header(8, 0) + "{}", true, 0},
        {"a HELLO with a wrong check byte", bad_check, true, 0},
        {"length field 5", header(5, 8), true, 0},
        {"length field -10", header(static_cast<std::uint32_t>(-10), 8), true, 0},
        {"PING with empty payload", ping, false, 1},
        {"REQ with undecodable payload", frame(PacketType::kRequest, "\xff\x01\x02"), false, 1},
        {"two HELLOs and a partial third in one write", hello + hello + hello.substr(0, 7), false, 2},
        {"one frame of 1 MiB + 16 bytes", header(static_cast<std::uint32_t>(mib + 16), 1), true, 0},
        {"one frame of exactly 1 MiB", frame(PacketType::kEvent, std::string(mib - 6, 'x')), false, 1},
        {"one frame of exactly 1 MiB and a HELLO",
         frame(PacketType::kEvent, std::string(mib - 6, 'x')) + hello, false, 2},
    };
    for (const Row& row : rows) {
      CAPTURE(row.input);
      UvWorld world;
      Node b(world, "b");
      RawPeer peer(world, b);
      RawPeer bystander(world, b);
      peer.write(row.bytes);
      if (row.closes) {
        REQUIRE(world.await([&] { return peer.log.closed.has_value(); }));
      } else {
        REQUIRE(world.await([&] { return b.lines.size() == row.frames; }));
        CHECK_FALSE(peer.log.closed.has_value());
      }
      CHECK(b.lines.size() == row.frames);
      // Whatever happened, others are served.
      bystander.write(frame(PacketType::kEvent, "still here"));
      REQUIRE(world.await([&] { return b.heard("EVENT still here"); }));
      CHECK(b.transporter->accepted_count() == (row.closes ? 1 : 2));
    }
  }

  TEST_CASE("a HELLO sent one byte at a time is one frame") {
    UvWorld world;
    Node b(world, "b");
    RawPeer peer(world, b);
    for (const char byte : frame(PacketType::kGossipHello, "{\"host\":1}")) {
      peer.write({&byte, 1});
      world.turn();
    }
    REQUIRE(world.await([&] { return b.lines.size() == 1; }));
    CHECK(b.lines[0] == "GOSSIP_HELLO {\"host\":1}");
  }

  TEST_CASE("a node that goes is lost at once, and a dial to where nobody listens is a loss too") {
    UvWorld world;
    Node a(world, "a");
    a.greet();
    auto b = std::make_unique<Node>(world, "b");
    a.knows(*b);
    CHECK(a.send("b", "1"));
    REQUIRE(world.await([&] { return b->heard("EVENT 1"); }));
    b.reset();
    REQUIRE(world.await([&] { return a.heard("lost b EOF") || a.heard("lost b ECONNRESET"); }));
    CHECK(a.lines.size() == 1);
    CHECK(a.send("b", "2"));
    CHECK(a.lines.size() == 1);
    REQUIRE(world.await([&] { return a.heard("lost b ECONNREFUSED"); }));
  }

  TEST_CASE("the end of an accepted connection means nothing") {
    UvWorld world;
    Node a(world, "a"), b(world, "b");
    a.greet();
    b.greet();
    a.knows(b);
    b.knows(a);
    CHECK(a.send("b", "1"));
    CHECK(b.send("a", "1"));
    REQUIRE(world.await([&] { return b.heard("EVENT 1") && a.heard("EVENT 1"); }));
    a.transporter->forget_node("b");
    REQUIRE(world.await([&] {
      if (b.transporter->accepted_count() != 0) world.loop.post([&] { world.wake(); });
      return b.transporter->accepted_count() == 0;
    }));
    CHECK(b.lines.size() == 2);
    CHECK(b.send("a", "2"));
    REQUIRE(world.await([&] { return a.heard("EVENT 2"); }));
  }

  TEST_CASE("a node whose connection to us breaks is lost: its last answers may be") {
    UvWorld world;
    Node b(world, "b");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(b.transporter->listen_address().port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const std::string bytes = frame(PacketType::kGossipHello, "hello from a");
    REQUIRE(send(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    REQUIRE(world.await([&] { return !b.lines.empty(); }));
    const linger at_once{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);  // With a reset.
    REQUIRE(world.await([&] { return b.heard("lost a ECONNRESET"); }));
  }

  TEST_CASE("several connections of one peer are fine, and idle ones are never closed") {
    UvWorld world;
    Node b(world, "b");
    std::vector<std::unique_ptr<RawPeer>> peers;
    for (int i = 0; i < 5; ++i) {
      peers.push_back(std::make_unique<RawPeer>(world, b));
      peers.back()->write(frame(PacketType::kGossipHello, "{}"));
    }
    REQUIRE(world.await([&] { return b.lines.size() == 5; }));
    peers[3]->write(frame(PacketType::kEvent, "x"));
    REQUIRE(world.await([&] { return b.heard("EVENT x"); }));
    CHECK(b.transporter->accepted_count() == 5);
  }

  TEST_CASE("frames sent before the greeting is set follow it") {
    UvWorld world;
    Node a(world, "a"), b(world, "b");
    a.knows(b);
    CHECK(a.send("b", "early"));
    world.turn(3);
    CHECK(b.lines.empty());
    a.greet();
    REQUIRE(world.await([&] { return b.lines.size() == 2; }));
    CHECK(b.lines == Lines{"GOSSIP_HELLO hello from a", "EVENT early"});
  }

  TEST_CASE("too many connections: the oldest silent one makes way, and speakers are kept") {
    UvWorld world;
    TcpOptions options = local_options();
    options.max_accepted = 3;
    Node b(world, "b", options);
    const auto connect = [&](bool speaks) {
      auto peer = std::make_unique<RawPeer>(world, b);
      const std::size_t before = b.lines.size();
      if (speaks) {
        peer->write(frame(PacketType::kGossipHello, "{}"));
        REQUIRE(world.await([&] { return b.lines.size() > before; }));
      } else {
        const std::size_t size = b.transporter->accepted_count();
        REQUIRE(world.await([&] {
          if (b.transporter->accepted_count() == size) world.loop.post([&] { world.wake(); });
          return b.transporter->accepted_count() != size;
        }));
      }
      return peer;
    };
    const auto first = connect(true);
    const auto silent = connect(false);
    const auto second = connect(true);
    const auto third = connect(true);
    REQUIRE(world.await([&] { return silent->log.closed.has_value(); }));
    RawPeer refused(world, b);
    REQUIRE(world.await([&] { return refused.log.closed.has_value(); }));
    CHECK(b.transporter->accepted_count() == 3);
    CHECK_FALSE(first->log.closed.has_value());
    CHECK_FALSE(third->log.closed.has_value());
  }

  TEST_CASE("frames under way share one budget: above it the one that takes longest costs its connection") {
    UvWorld world;
    TcpOptions options = local_options();
    options.max_packet_size = 100'000;
    options.partial_bytes_max = 100'000;
    Node node(world, "a", options);
    const std::string whole = frame(PacketType::kEvent, std::string(59'994, 'x'));
    const std::string_view part = std::string_view(whole).substr(0, 40'000),
                           rest = std::string_view(whole).substr(40'000);
    RawPeer slow(world, node), quick(world, node), late(world, node);
    int told = 0;
    const auto send_part = [&](RawPeer& peer) {
      peer.write(frame(PacketType::kEvent, "ready"));
      peer.write(part);
      ++told;
      REQUIRE(world.await([&] { return node.count("EVENT ready") == static_cast<std::size_t>(told); }));
    };
    send_part(slow);
    send_part(quick);
    quick.write(rest);
    quick.write(part);
    REQUIRE(world.await([&] { return node.lines.size() == 3; }));  // Its frame is a younger one now.
    CHECK_FALSE(slow.log.closed.has_value());
    send_part(late);
    REQUIRE(world.await([&] { return slow.log.closed.has_value(); }));
    quick.write(rest);
    late.write(rest);
    REQUIRE(world.await([&] { return node.lines.size() == 6; }));
    CHECK_FALSE(quick.log.closed.has_value());
    CHECK_FALSE(late.log.closed.has_value());
    // What the closed one held is given back, and what is whole counts for nothing.
    for (int i = 0; i < 5; ++i) late.write(whole);
    REQUIRE(world.await([&] { return node.lines.size() == 11; }));
  }

  TEST_CASE("stopping delivers what was sent before, then nothing is told any more") {
    UvWorld world;
    Node a(world, "a"), b(world, "b");
    a.greet();
    b.greet();
    a.knows(b);
    b.knows(a);
    CHECK(b.send("a", "warm"));
    REQUIRE(world.await([&] { return a.heard("EVENT warm"); }));
    const std::string payload(500'000, 'p');
    for (int i = 0; i < 20; ++i) CHECK(a.send("b", payload));
    a.stop();
    CHECK_FALSE(a.send("b", "late"));
    CHECK(b.send("a", "to one who stops"));
    REQUIRE(world.await([&] { return a.stopped && b.count("EVENT " + payload) == 20; }));
    REQUIRE(world.await([&] { return b.heard("lost a EOF") || b.heard("lost a ECONNRESET"); }));
    CHECK(a.transporter->accepted_count() == 0);
    CHECK(a.transporter->listen_address().port == 0);
  }

  TEST_CASE("stopping ends in time although a peer does not read") {
    // The kernel accepts for it, and nobody ever takes a byte.
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(fd, 8) == 0);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    {
      UvWorld world;
      Node a(world, "a");
      a.greet();
      a.transporter->learn_address("b", {"127.0.0.1", ntohs(address.sin_port)});
      for (int i = 0; i < 40; ++i) CHECK(a.send("b", std::string(500'000, 'x')));
      const Instant before = world.loop.now();
      a.stop();
      REQUIRE(world.await([&] { return a.stopped; }));
      CHECK(world.loop.now() - before > 500ms);  // It did try.
      CHECK(world.loop.now() - before < 2s);
      CHECK(a.lines.empty());
    }
    close(fd);
  }

  TEST_CASE("a node may stop from inside a frame or a sighting") {
    UvWorld world;
    TcpOptions options = local_options();
    options.urls = "x:1/n1,y:2/n2";
    Node sighting(world, "s", options);
    sighting.during_sighting = [&] { sighting.stop(); };
    REQUIRE(world.await([&] { return sighting.stopped; }));
    CHECK(sighting.lines.size() == 1);

    Node b(world, "b");
    RawPeer peer(world, b);
    b.during_frame = [&] { b.stop(); };
    peer.write(frame(PacketType::kEvent, "1") + frame(PacketType::kEvent, "2"));
    REQUIRE(world.await([&] { return b.stopped; }));
    CHECK(b.lines == Lines{"EVENT 1"});
  }

  TEST_CASE("stopped before it started: both completions run") {
    UvWorld world;
    TcpTransporter transporter(world.loop, world.network, Logger(), local_options());
    struct Silent final : Transporter::Listener {
      void on_frame(const FrameView&) override { FAIL("upcall"); }
      void on_reconnected() override { FAIL("upcall"); }
      void on_disconnected(const Error&) override { FAIL("upcall"); }
      void on_node_sighted(std::string_view, const SocketAddress&, bool) override { FAIL("upcall"); }
      void on_node_lost(std::string_view, const Error&) override { FAIL("upcall"); }
      void on_undelivered(std::string_view, std::string_view) override { FAIL("upcall"); }
    } silent;
    std::string told;
    transporter.start({"a", ""}, silent, [&](Result<> outcome) { told += outcome.ok() ? "ok " : "failed "; });
    transporter.stop([&](Result<>) {
      told += "stopped";
      world.wake();
    });
    REQUIRE(world.await([&] { return told == "failed stopped"; }));
  }

  TEST_CASE("static peers are sighted after the start, and our own entry gives our port") {
    UvWorld world;
    auto listener = world.network.listen({"127.0.0.1", 0}, {}, [](std::unique_ptr<Stream>) {});
    const std::uint16_t port = (*listener)->local_address().port;
    listener->reset();
    TcpOptions options = local_options();
    options.urls = "10.1.2.3:44/n1,bad,127.0.0.1:" + std::to_string(port) + "/a";
    Node a(world, "a", options);
    CHECK(a.error.empty());
    REQUIRE(world.await([&] { return a.lines.size() == 1; }));
    CHECK(a.lines[0] == "sighted n1 10.1.2.3:44");
    CHECK(a.transporter->listen_address().port == port);
    CHECK(a.transporter->listen_address().host == "127.0.0.1");
  }

  TEST_CASE("a start that cannot be says why") {
    UvWorld world;
    Node holder(world, "h");
    TcpOptions taken = local_options();
    taken.port = holder.transporter->listen_address().port;
    CHECK(Node(world, "a", taken).error.find("address already in use") != std::string::npos);

    TcpOptions small = local_options();
    small.max_packet_size = 10;
    CHECK(Node(world, "a", small).error.find("max_packet_size") != std::string::npos);

    TcpOptions file = local_options();
    file.urls = "file:///no/such/file";
    CHECK(Node(world, "a", file).error.find("/no/such/file") != std::string::npos);

    TcpOptions udp;
    udp.host = "127.0.0.1";
    CHECK(Node(world, "a|b", udp).error.find("'|'") != std::string::npos);
  }

  TEST_CASE("without a host of its own a node is dialled by its host name, or by its address when so asked") {
    UvWorld world;
    TcpOptions options;
    options.udp_discovery = false;
    Node by_name(world, "a", options);
    CHECK(by_name.transporter->listen_address().host == world.network.hostname());
    options.use_hostname = false;
    Node by_address(world, "b", options);
    const std::string host = by_address.transporter->listen_address().host;
    CHECK(host.find_first_not_of("0123456789.") == std::string::npos);
  }
}

TEST_SUITE("tcp options") {
  TEST_CASE("defaults are valid and each bad option is named") {
    CHECK(validate(TcpOptions()).ok());
    const auto fault = [](auto change) {
      TcpOptions options;
      change(options);
      const Result<> result = validate(options);
      return result.ok() ? std::string() : result.error().message();
    };
    struct Row {
      const char* name;
      std::string message;
    };
    const std::vector<Row> rows = {
        {"max_packet_size", fault([](TcpOptions& o) { o.max_packet_size = 4095; })},
        {"max_packet_size", fault([](TcpOptions& o) { o.max_packet_size = 1UL << 31; })},
        {"queue_bytes_max", fault([](TcpOptions& o) { o.queue_bytes_max = 5; })},
        {"max_accepted", fault([](TcpOptions& o) { o.max_accepted = 0; })},
        {"connect_timeout", fault([](TcpOptions& o) { o.connect_timeout = {}; })},
        {"urls", fault([](TcpOptions& o) { o.urls = 5; })},
        {"udp_port", fault([](TcpOptions& o) { o.udp_port = 0; })},
        {"udp_period", fault([](TcpOptions& o) { o.udp_period = 1us; })},
        {"udp_multicast_ttl", fault([](TcpOptions& o) { o.udp_multicast_ttl = 0; })},
        {"udp_multicast_ttl", fault([](TcpOptions& o) { o.udp_multicast_ttl = 256; })},
        {"udp_max_discovery", fault([](TcpOptions& o) { o.udp_max_discovery = -1; })},
        {"udp_multicast", fault([](TcpOptions& o) { o.udp_multicast = "10.0.0.1"; })},
        {"udp_multicast", fault([](TcpOptions& o) { o.udp_multicast = "224.0.0"; })},
        {"udp_bind_address", fault([](TcpOptions& o) { o.udp_bind_address = "eth0"; })},
        {"udp_bind_address", fault([](TcpOptions& o) { o.udp_bind_address = "1.2.3.256"; })},
        {"udp_broadcast_addresses", fault([](TcpOptions& o) { o.udp_broadcast_addresses = {"1.2.3.4.5"}; })},
    };
    for (const Row& row : rows) {
      CAPTURE(row.name);
      CHECK(row.message.find(std::string(row.name) + " is ") != std::string::npos);
    }
  }
}

TEST_SUITE("tcp discovery") {
  TcpOptions discovering(std::uint16_t port) {
    TcpOptions options;
    options.host = "127.0.0.1";  // Announced over loopback alone.
    options.udp_port = port;
    return options;
  }

  TEST_CASE("nodes on loopback see each other by multicast at once, and those of another namespace not") {
    UvWorld world;
    const TcpOptions options = discovering(free_udp_port(world));
    Node a(world, "a", options), b(world, "b", options), c(world, "c", options);
    Node stranger(world, "d", options, "other");
    const Instant before = world.loop.now();
    const auto sees = [](const Node& who, const Node& whom) {
      return who.heard("sighted " + whom.id +
                       " 127.0.0.1:" + std::to_string(whom.transporter->listen_address().port));
    };
    REQUIRE(world.await(
        [&] { return sees(a, b) && sees(a, c) && sees(b, a) && sees(b, c) && sees(c, a) && sees(c, b); }));
    CHECK(world.loop.now() - before < 2s);
    // The newest goes; those left still find a fourth.
    c.stop();
    REQUIRE(world.await([&] { return c.stopped; }));
    Node e(world, "e", options);
    REQUIRE(world.await([&] { return sees(a, e) && sees(b, e); }));
    CHECK(stranger.lines.empty());
    for (const Node* each : {&a, &b, &e}) CHECK_FALSE(sees(*each, stranger));
  }

  TEST_CASE("another process with our node ID is sighted, and we by it, though it came later") {
    UvWorld world;
    TcpOptions options = discovering(free_udp_port(world));
    options.udp_max_discovery = 1;
    Node first(world, "a", options);
    Node second(world, "a", options);
    const auto sighted = [](const Node& other) {
      return "sighted a 127.0.0.1:" + std::to_string(other.transporter->listen_address().port);
    };
    REQUIRE(world.await([&] { return first.heard(sighted(second)) && second.heard(sighted(first)); }));
    CHECK_FALSE(first.heard(sighted(first)));
    CHECK_FALSE(second.heard(sighted(second)));
  }

  TEST_CASE("broadcast finds nodes on loopback too") {
    UvWorld world;
    TcpOptions options = discovering(free_udp_port(world));
    options.udp_multicast.clear();
    options.udp_broadcast = true;
    Node a(world, "a", options), b(world, "b", options);
    REQUIRE(world.await([&] { return !a.lines.empty() && !b.lines.empty(); }));
  }

  TEST_CASE("the number of announcements can be limited") {
    UvWorld world;
    TcpOptions options = discovering(free_udp_port(world));
    Node hearer(world, "h", options);
    options.udp_max_discovery = 2;
    options.udp_period = 10ms;
    Node a(world, "a", options);
    REQUIRE(world.await([&] { return hearer.lines.size() == 2; }));
    bool later = false;
    Timer timer;
    timer.set_after(world.loop, 100ms, [&] {
      later = true;
      world.wake();
    });
    REQUIRE(world.await([&] { return later; }));
    CHECK(hearer.lines.size() == 2);
  }

  TEST_CASE("a node may stop from inside a datagram's sighting") {
    UvWorld world;
    const TcpOptions options = discovering(free_udp_port(world));
    Node a(world, "a", options);
    a.during_sighting = [&] { a.stop(); };
    Node b(world, "b", options);
    REQUIRE(world.await([&] { return a.stopped; }));
    CHECK(a.lines.size() == 1);
  }

  TEST_CASE("datagrams that are none change nothing") {
    UvWorld world;
    const TcpOptions options = discovering(free_udp_port(world));
    Node a(world, "a", options, "prod");
    DatagramOptions sender_options;
    sender_options.bind = {"127.0.0.1", 0};
    auto sender = world.network.open_datagram(sender_options, [](BytesView, const SocketAddress&) {});
    const SocketAddress to{"127.0.0.1", options.udp_port};
    for (const char* text :
         {"dev|n2|6001", "a|b", "prod||6001", "prod|n2|abc", "prod|n2|70000", "prod|n2|6001|x", ""}) {
      (*sender)->send(text, to);
    }
    (*sender)->send("prod|a|" + std::to_string(a.transporter->listen_address().port), to);  // Its own.
    (*sender)->send(std::string(60'000, '|'), to);
    (*sender)->send("prod|n2|6001", to);
    REQUIRE(world.await([&] { return !a.lines.empty(); }));
    CHECK(a.lines == Lines{"sighted n2 127.0.0.1:6001"});
  }
}

}  // namespace
}  // namespace weft
