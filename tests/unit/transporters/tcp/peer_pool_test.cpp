#include "transporters/tcp/peer_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/manual_loop.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::ManualLoop;

struct FakeStream;

// Connections that do what the test says.
struct FakeNetwork final : Network {
  std::unique_ptr<Stream> connect(const SocketAddress& to, const StreamOptions& options) override;
  Result<std::unique_ptr<StreamListener>> listen(const SocketAddress&, const StreamOptions&,
                                                 AcceptCallback) override {
    return Error(ErrorClass::kBase, "not here");
  }
  Result<std::unique_ptr<DatagramSocket>> open_datagram(const DatagramOptions&, DatagramCallback) override {
    return Error(ErrorClass::kBase, "not here");
  }
  [[nodiscard]] std::vector<InterfaceAddress> interfaces() const override { return {}; }
  [[nodiscard]] std::string hostname() const override { return "host"; }

  [[nodiscard]] FakeStream& last() const { return *streams.back(); }
  std::vector<FakeStream*> streams;  // Null once destroyed.
};

struct FakeStream final : Stream {
  FakeStream(FakeNetwork& owner, SocketAddress address, std::size_t queue_max)
      : network(owner), to(std::move(address)), queue_bytes_max(queue_max) {}
  ~FakeStream() override {
    std::replace(network.streams.begin(), network.streams.end(), this, static_cast<FakeStream*>(nullptr));
  }

  void set_handler(Handler& the_handler) override { handler = &the_handler; }
  bool write(BytesView head, BytesView body) override {
    if (queued.size() + head.size() + body.size() > queue_bytes_max) return false;
    queued += head;
    queued += body;
    return true;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return queued.size(); }
  void close_after_flush() override { closing = true; }
  [[nodiscard]] SocketAddress remote_address() const override { return is_open ? to : SocketAddress{}; }

  void open() { is_open = true; }
  void fail(const char* type) { handler->on_closed(Error(ErrorClass::kRetryable, type, type)); }

  FakeNetwork& network;
  const SocketAddress to;
  const std::size_t queue_bytes_max;
  Handler* handler = nullptr;
  std::string queued;
  bool is_open = false;
  bool closing = false;
};

std::unique_ptr<Stream> FakeNetwork::connect(const SocketAddress& to, const StreamOptions& options) {
  auto stream = std::make_unique<FakeStream>(*this, to, options.queue_bytes_max);
  streams.push_back(stream.get());
  return stream;
}

struct Fixture final : PeerPool::Owner {
  explicit Fixture(PeerPoolOptions options = {}) : pool(loop, network, *this, std::move(options)) {}
  void on_peer_lost(std::string_view node, const Error& reason) override {
    lost.push_back(std::string(node) + " " + std::string(reason.type()));
    if (during_loss) during_loss();
  }
  bool send(std::string_view node, std::string_view text, bool is_traffic = true) {
    return pool.send(node, "", text, is_traffic).ok();
  }

  ManualLoop loop;
  FakeNetwork network;
  std::vector<std::string> lost;
  UniqueFunction<void()> during_loss;
  PeerPool pool;
};

const SocketAddress kA{"10.0.0.1", 1};
const SocketAddress kB{"10.0.0.2", 2};

TEST_SUITE("tcp peer pool") {
  TEST_CASE("one connection is made on demand, opens with the greeting, and takes what is sent meanwhile") {
    Fixture f;
    f.pool.set_greeting("HELLO ");
    f.pool.learn_address("a", kA);
    CHECK(f.network.streams.empty());
    CHECK(f.send("a", "1 "));
    CHECK(f.send("a", "2 "));
    REQUIRE(f.network.streams.size() == 1);
    CHECK(f.network.last().to == kA);
    CHECK(f.network.last().queued == "HELLO 1 2 ");
    f.network.last().open();
    CHECK(f.send("a", "3 "));
    CHECK(f.network.streams.size() == 1);
    CHECK(f.network.last().queued == "HELLO 1 2 3 ");
  }

  TEST_CASE("what is sent before there is a greeting waits for it, up to the queue's limit") {
    PeerPoolOptions options;
    options.stream.queue_bytes_max = 10;
    Fixture f(options);
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "12345"));
    CHECK_FALSE(f.send("a", "678901"));
    CHECK(f.network.streams.empty());
    f.pool.set_greeting("HI ");
    REQUIRE(f.network.streams.size() == 1);
    CHECK(f.network.last().queued == "HI 12345");
  }

  TEST_CASE("a node without an address cannot be reached") {
    Fixture f;
    f.pool.set_greeting("HI ");
    const auto result = f.pool.send("a", "", "x", true);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().error_class() == ErrorClass::kServiceNotAvailable);
    CHECK(result.error().retryable());
    CHECK(result.error().data()["nodeID"].str() == "a");
  }

  TEST_CASE("a full queue is an error and nothing was taken") {
    PeerPoolOptions options;
    options.stream.queue_bytes_max = 10;
    Fixture f(options);
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1234"));
    const auto result = f.pool.send("a", "ab", "cd", true);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().error_class() == ErrorClass::kQueueIsFull);
    CHECK(f.network.last().queued == "HI 1234");
  }

  TEST_CASE("the end of a connection is a loss, and the next send dials anew") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    f.network.last().open();
    f.loop.advance(2s);
    f.network.last().fail("EOF");
    CHECK(f.lost == std::vector<std::string>{"a EOF"});
    CHECK(f.pool.connection_count() == 0);
    CHECK(f.send("a", "2"));
    CHECK(f.network.last().queued == "HI 2");
  }

  TEST_CASE("refused dials: the first retry is immediate, then they are 50 ms to 1 s apart") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    f.network.last().fail("ECONNREFUSED");
    CHECK(f.send("a", "2"));
    f.network.last().fail("ECONNREFUSED");
    for (const Duration pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
      CHECK_FALSE(f.send("a", "x"));
      f.loop.advance(pause - 1ms);
      CHECK_FALSE(f.send("a", "x"));
      f.loop.advance(1ms);
      CHECK(f.send("a", "x"));
      f.network.last().fail("ECONNREFUSED");
    }
    CHECK(f.network.streams.size() == 9);
    CHECK(f.lost.size() == 9);
    // Who says where it listens is there, and is dialled at once.
    CHECK_FALSE(f.send("a", "x"));
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "x"));
  }

  TEST_CASE("a peer that accepts and hangs up at once is held back like one that refuses") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    for (int i = 0; i < 2; ++i) {
      CHECK(f.send("a", "1"));
      f.network.last().open();
      f.network.last().fail("EOF");
    }
    CHECK_FALSE(f.send("a", "1"));
    f.loop.advance(50ms);
    CHECK(f.send("a", "1"));
    f.network.last().open();
    f.loop.advance(1s);
    f.network.last().fail("EOF");  // That one was good.
    CHECK(f.send("a", "1"));
  }

  TEST_CASE("another address lifts the hold") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    for (int i = 0; i < 3; ++i) {
      f.loop.advance(60ms);
      CHECK(f.send("a", "1"));
      f.network.last().fail("ECONNREFUSED");
    }
    CHECK_FALSE(f.send("a", "1"));
    f.pool.learn_address("a", kB);
    CHECK(f.send("a", "1"));
    CHECK(f.network.last().to == kB);
  }

  TEST_CASE("a node on another port is dialled there, silently") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    FakeStream& old = f.network.last();
    old.open();
    f.pool.learn_address("a", {"10.0.0.1", 77});
    CHECK(old.closing);
    CHECK(f.send("a", "2"));
    CHECK(f.network.last().to.port == 77);
    CHECK(f.network.last().queued == "HI 2");
    old.fail("CLOSED");
    CHECK(f.lost.empty());
    CHECK(f.network.streams[0] == nullptr);
  }

  TEST_CASE(
      "another name for the same port leaves a standing connection alone, and replaces one that is being "
      "made") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    f.network.last().open();
    f.pool.learn_address("a", {"host-a", 1});
    CHECK_FALSE(f.network.last().closing);
    CHECK(f.send("a", "2"));
    CHECK(f.network.streams.size() == 1);
    f.loop.advance(2s);
    f.network.last().fail("EOF");
    CHECK(f.send("a", "3"));
    CHECK(f.network.last().to.host == "host-a");
    f.pool.learn_address("a", kA);
    CHECK(f.network.last().closing);
    f.network.last().fail("ENOTFOUND");  // What it carried is lost.
    CHECK(f.lost == std::vector<std::string>{"a EOF", "a ENOTFOUND"});
  }

  TEST_CASE("above the limit the least recently used connection makes way; gossip is no use") {
    PeerPoolOptions options;
    options.connections_max = 2;
    Fixture f(options);
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    f.pool.learn_address("b", kB);
    f.pool.learn_address("c", {"10.0.0.3", 3});
    CHECK(f.send("a", "1"));
    CHECK(f.send("b", "1"));
    CHECK(f.send("a", "2"));
    CHECK(f.send("b", "gossip", false));
    CHECK(f.send("c", "1"));
    CHECK(f.pool.connection_count() == 2);
    CHECK_FALSE(f.network.streams[0]->closing);
    CHECK(f.network.streams[1]->closing);
    f.network.streams[1]->open();
    f.network.streams[1]->fail("CLOSED");
    CHECK(f.lost.empty());
  }

  TEST_CASE("a forgotten node's connection goes silently, also from inside its loss") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    f.pool.forget_node("a");
    f.pool.forget_node("a");
    CHECK(f.network.streams[0] == nullptr);
    CHECK(f.pool.connection_count() == 0);
    CHECK_FALSE(f.send("a", "1"));
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    f.during_loss = [&] { f.pool.forget_node("a"); };
    f.network.last().fail("EOF");
    CHECK(f.lost.size() == 1);
    CHECK_FALSE(f.send("a", "1"));
  }

  TEST_CASE("a loss may be answered by sending again at once") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    CHECK(f.send("a", "1"));
    f.during_loss = [&] { CHECK(f.send("a", "again")); };
    f.network.last().fail("ECONNREFUSED");
    CHECK(f.network.last().queued == "HI again");
  }

  TEST_CASE("closing flushes every connection, tells when all are gone and of no loss") {
    Fixture f;
    f.pool.set_greeting("HI ");
    f.pool.learn_address("a", kA);
    f.pool.learn_address("b", kB);
    CHECK(f.send("a", "1"));
    CHECK(f.send("b", "1"));
    bool done = false;
    f.pool.close_after_flush([&] { done = true; });
    f.loop.settle();
    CHECK_FALSE(done);
    CHECK(f.network.streams[0]->closing);
    f.network.streams[0]->open();
    f.network.streams[0]->fail("CLOSED");
    f.network.streams[1]->fail("ECONNREFUSED");
    CHECK_FALSE(done);
    f.loop.settle();
    CHECK(done);
    CHECK(f.lost.empty());
    CHECK_FALSE(f.send("a", "1"));
    f.pool.learn_address("a", kA);
    CHECK_FALSE(f.send("a", "1"));
  }

  TEST_CASE("closing with no connections is done later, never at once") {
    Fixture f;
    bool done = false;
    f.pool.close_after_flush([&] { done = true; });
    CHECK_FALSE(done);
    f.loop.settle();
    CHECK(done);
  }
}

}  // namespace
}  // namespace weft
