#include "lib/sim/sim_stream.h"

#include <doctest/doctest.h>

#include "tests/unit/lib/sim/support.h"

namespace weft {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_SUITE("sim stream") {
  TEST_CASE("a stream connects, carries bytes both ways in order, and names its ends") {
    Pair pair;
    pair.listen();
    pair.connect();
    CHECK(pair.client->stream->remote_address().host.empty());
    CHECK(pair.client->write("early "));  // Before the connection stands.
    pair.world.run_for(milliseconds(20));
    REQUIRE(pair.server.has_value());
    CHECK(pair.client->stream->remote_address() == SocketAddress{"10.0.0.2", 80});
    CHECK(pair.server->stream->remote_address().host == "10.0.0.1");
    for (int i = 0; i < 50; ++i) {
      CHECK(pair.client->stream->write("a", std::to_string(i % 10)));
      CHECK(pair.server->write("b"));
      pair.world.run_for(std::chrono::microseconds(100));
    }
    pair.world.run_for(milliseconds(20));
    std::string wanted = "early ";
    for (int i = 0; i < 50; ++i) wanted += "a" + std::to_string(i % 10);
    CHECK(pair.server->text == wanted);
    CHECK(pair.client->text == std::string(50, 'b'));
  }

  TEST_CASE("what one turn writes arrives as one piece, a latency later") {
    Pair pair;
    SimLink link;
    link.latency_min = link.latency_max = milliseconds(7);
    pair.world.fabric().set_link(link);
    REQUIRE(pair.stand());
    const Duration begin = pair.world.elapsed();
    pair.process_a->loop().post([&] {
      for (int i = 0; i < 10; ++i) CHECK(pair.client->write("0123456789"));
      CHECK(pair.client->stream->queued_bytes() == 100);
    });
    pair.world.run_until([&] { return pair.server->reads > 0; }, seconds(1));
    CHECK(pair.world.elapsed() - begin == milliseconds(7));
    CHECK(pair.server->reads == 1);
    CHECK(pair.server->text.size() == 100);
    CHECK(pair.client->stream->queued_bytes() == 0);
  }

  TEST_CASE("bytes come with readable padding behind them") {
    Pair pair;
    REQUIRE(pair.stand());
    CHECK(pair.client->write("x"));
    struct Reader final : Stream::Handler {
      void on_data(BytesView bytes) override {
        for (std::size_t i = 0; i < kReadPadding; ++i) sum += bytes.data()[bytes.size() + i];
        ++reads;
      }
      void on_closed(const Error&) override {}
      int sum = 0;
      int reads = 0;
    } reader;
    pair.server->stream->set_handler(reader);
    pair.world.run_for(milliseconds(10));
    CHECK(reader.reads == 1);
  }

  TEST_CASE("connecting to a port nobody listens on is refused after a round trip") {
    Pair pair;
    pair.connect();
    pair.world.run_for(milliseconds(5));
    CHECK(pair.client->closed == "ECONNREFUSED");
    CHECK(pair.world.fabric().stream_count() == 0);
  }

  TEST_CASE("an unknown name and a silent host fail in their own ways") {
    Pair pair;
    pair.listen();
    RecordingEnd nowhere(pair.process_a->network().connect({"no-such-host", 80}, {}));
    pair.cut_off();
    pair.connect({.connect_timeout = seconds(3)});
    pair.world.run_for(milliseconds(2999));
    CHECK(nowhere.closed == "ENOTFOUND");
    CHECK(pair.client->closed.empty());
    pair.world.run_for(milliseconds(2));
    CHECK(pair.client->closed == "ETIMEDOUT");
  }

  TEST_CASE("a connection that is asked for during a short cut stands after it") {
    Pair pair;
    pair.listen();
    const auto cut = pair.cut_off();
    pair.connect();
    pair.world.run_for(milliseconds(500));
    pair.world.fabric().heal(cut);
    CHECK(pair.world.run_until([&] { return pair.server.has_value(); }, seconds(1)));
  }

  TEST_CASE("loopback reaches the own host, and a listener on loopback no other") {
    Pair pair;
    SimRuntime other(pair.world, pair.b);
    auto listener = pair.process_b->network().listen(
        {"127.0.0.1", 0}, {},
        [&](std::unique_ptr<Stream> stream) { pair.server.emplace(std::move(stream)); });
    const std::uint16_t port = (*listener)->local_address().port;
    RecordingEnd far(pair.process_a->network().connect({"b", port}, {}));
    RecordingEnd near(other.network().connect({"127.0.0.1", port}, {}));
    pair.world.run_for(milliseconds(10));
    CHECK(far.closed == "ECONNREFUSED");
    REQUIRE(pair.server.has_value());
    CHECK(pair.server->stream->remote_address().host == "127.0.0.1");
  }

  TEST_CASE("a port is taken once on a host, freed with its listener, and chosen when 0") {
    Pair pair;
    pair.listen();
    const auto ignore = [](std::unique_ptr<Stream>) {};
    CHECK(pair.process_b->network().listen({"", 80}, {}, ignore).error().type() == "EADDRINUSE");
    CHECK(pair.process_a->network().listen({"", 80}, {}, ignore).ok());
    pair.listener.reset();
    CHECK(pair.process_b->network().listen({"", 80}, {}, ignore).ok());
    auto chosen = pair.process_b->network().listen({"", 0}, {}, ignore);
    CHECK((*chosen)->local_address().port > 1024);
  }

  TEST_CASE("destroying one end is the end of the stream at the other, after all that was sent") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.process_a->loop().post([&] { CHECK(pair.client->write("last words")); });
    pair.process_a->loop().post([&] { pair.client.reset(); });
    pair.world.run_for(milliseconds(10));
    CHECK(pair.server->text == "last words");
    CHECK(pair.server->closed == "EOF");
    pair.server.reset();
    CHECK(pair.world.fabric().stream_count() == 0);
  }

  TEST_CASE("close_after_flush sends what is queued, then ends both sides") {
    Pair pair;
    pair.listen();
    pair.connect();
    CHECK(pair.client->write("queued before the connection"));
    pair.client->stream->close_after_flush();
    CHECK_FALSE(pair.client->write("too late"));
    pair.world.run_for(milliseconds(20));
    CHECK(pair.client->closed == "CLOSED");
    CHECK(pair.server->text == "queued before the connection");
    CHECK(pair.server->closed == "EOF");
  }

  TEST_CASE("a stream may be destroyed inside its own upcall") {
    Pair pair;
    REQUIRE(pair.stand());
    struct Quitter final : Stream::Handler {
      explicit Quitter(std::optional<RecordingEnd>& mine) : end(mine) {}
      void on_data(BytesView) override { end.reset(); }
      void on_closed(const Error&) override { FAIL("closed after it was destroyed"); }
      std::optional<RecordingEnd>& end;
    } quitter(pair.server);
    pair.server->stream->set_handler(quitter);
    CHECK(pair.client->write("x"));
    pair.world.run_for(milliseconds(10));
    CHECK(pair.client->closed == "EOF");
  }

  TEST_CASE("a killed process ends its streams at their peers at once") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.process_b->kill();
    CHECK_FALSE(pair.server->write("from the grave"));
    pair.world.run_for(milliseconds(2));
    CHECK(pair.client->closed == "EOF");
    CHECK(pair.server->closed.empty());
    CHECK(pair.client->text.empty());
  }

  TEST_CASE("a process killed over unread bytes resets its peers") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.process_b->freeze();
    CHECK(pair.client->write("never read"));
    pair.world.run_for(milliseconds(100));
    pair.process_b->kill();
    pair.world.run_for(milliseconds(3));
    CHECK(pair.client->closed == "ECONNRESET");
  }

  TEST_CASE("a process killed over unread bytes behind a cut is found out by a probe after it heals") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.process_b->freeze();
    CHECK(pair.client->write("never read"));
    pair.world.run_for(milliseconds(100));
    const auto cut = pair.cut_off();
    pair.process_b->kill();
    pair.world.run_for(milliseconds(500));
    CHECK(pair.client->closed.empty());
    pair.world.fabric().heal(cut);
    pair.world.run_for(milliseconds(1100));
    CHECK(pair.client->closed == "ECONNRESET");
  }

  TEST_CASE("a restarted process takes connections on the same port again") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.process_b->kill();
    pair.server.reset();
    pair.listener.reset();
    pair.process_b.reset();
    pair.process_b.emplace(pair.world, pair.b);
    pair.listen();
    pair.connect();
    CHECK(pair.world.run_until([&] { return pair.server.has_value(); }, milliseconds(10)));
  }

  TEST_CASE("bytes into a cut wire kill the stream after its user timeout, at the side that sent") {
    Pair pair;
    REQUIRE(pair.stand({.user_timeout = seconds(2), .keepalive_idle = Duration::zero()}));
    pair.cut_off();
    const Duration begin = pair.world.elapsed();
    CHECK(pair.client->write("lost"));
    CHECK(pair.world.run_until([&] { return !pair.client->closed.empty(); }, seconds(10)));
    CHECK(pair.client->closed == "ETIMEDOUT");
    CHECK(pair.world.elapsed() - begin == seconds(2));
    pair.world.run_for(seconds(600));
    CHECK(pair.server->closed.empty());  // No keepalive: it never learns.
  }

  TEST_CASE("a silent wire that is cut is noticed by keepalive, on both sides") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.cut_off();
    pair.world.run_for(milliseconds(2900));
    CHECK(pair.client->closed.empty());
    pair.world.run_for(milliseconds(200));
    CHECK(pair.client->closed == "ETIMEDOUT");
    CHECK(pair.server->closed == "ETIMEDOUT");
  }

  TEST_CASE("a cut that heals in time loses nothing") {
    Pair pair;
    REQUIRE(pair.stand());
    const auto cut = pair.cut_off();
    CHECK(pair.client->write("one "));
    pair.world.run_for(milliseconds(700));
    CHECK(pair.client->write("two"));
    CHECK(pair.client->stream->queued_bytes() == 7);
    pair.world.run_for(milliseconds(300));
    pair.world.fabric().heal(cut);
    pair.world.run_for(seconds(10));
    CHECK(pair.server->text == "one two");
    CHECK(pair.client->closed.empty());
    CHECK(pair.server->closed.empty());
  }

  TEST_CASE("a one-way cut lets bytes through one way, whose sender never hears that they came") {
    Pair pair;
    REQUIRE(pair.stand());
    SimHost* const from[] = {&pair.b};
    SimHost* const to[] = {&pair.a};
    pair.world.fabric().cut_one_way(from, to);
    CHECK(pair.client->write("there"));
    CHECK(pair.server->write("back"));
    pair.world.run_for(milliseconds(100));
    CHECK(pair.server->text == "there");
    CHECK(pair.client->text.empty());
    pair.world.run_for(seconds(2));
    CHECK(pair.client->closed == "ETIMEDOUT");
    CHECK(pair.server->closed == "ETIMEDOUT");
  }

  TEST_CASE("an end whose other end gave up behind a cut is reset once the wire is whole again") {
    Pair pair;
    pair.listen({.keepalive_idle = seconds(30)});
    pair.connect();
    pair.world.run_for(milliseconds(10));
    const auto cut = pair.cut_off();
    pair.world.run_for(seconds(4));
    CHECK(pair.client->closed == "ETIMEDOUT");
    CHECK(pair.server->closed.empty());
    pair.world.fabric().heal(cut);
    CHECK(pair.server->write("hello?"));
    pair.world.run_for(milliseconds(10));
    CHECK(pair.server->closed == "ECONNRESET");
  }

  TEST_CASE("a frozen reader is not noticed while its kernel has room, then the writer's queue fills") {
    Pair pair;
    REQUIRE(pair.stand({.queue_bytes_max = 4096, .user_timeout = seconds(2)}));
    pair.process_b->freeze();
    CHECK(pair.client->write("fits"));
    pair.world.run_for(seconds(60));
    CHECK(pair.client->closed.empty());
    CHECK(pair.client->stream->queued_bytes() == 0);
    // Fill its window, then the queue.
    const std::string block(4096, 'x');
    for (std::size_t sent = 0; sent < SimConnection::kWindowBytes; sent += block.size()) {
      CHECK(pair.client->write(block));
      pair.world.run_for(milliseconds(1));
    }
    CHECK(pair.client->write(block));
    CHECK_FALSE(pair.client->write("one more"));
    CHECK(pair.client->stream->queued_bytes() == block.size());
    pair.world.run_for(milliseconds(500));
    pair.process_b->thaw();
    pair.world.run_for(milliseconds(50));
    CHECK(pair.client->writable == 1);
    CHECK(pair.client->closed.empty());
    CHECK(pair.server->text.size() == 4 + SimConnection::kWindowBytes + block.size());
  }

  TEST_CASE("a reader that stays frozen over a full window costs the writer its stream") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.process_b->freeze();
    CHECK(pair.client->write(std::string(SimConnection::kWindowBytes, 'x')));
    pair.world.run_for(milliseconds(5));
    CHECK(pair.client->write("y"));
    pair.world.run_for(milliseconds(2100));
    CHECK(pair.client->closed == "ETIMEDOUT");
  }

  TEST_CASE("a machine that loses power is noticed by timeouts, and resets old streams once it is back") {
    Pair pair;
    pair.listen();
    pair.connect({.keepalive_idle = seconds(30)});
    pair.world.run_for(milliseconds(10));
    pair.world.fabric().power_off(pair.b);
    pair.process_b->kill();
    pair.world.run_for(seconds(1));
    CHECK(pair.client->closed.empty());
    pair.world.fabric().power_on(pair.b);
    CHECK(pair.client->write("still there?"));
    pair.world.run_for(milliseconds(10));
    CHECK(pair.client->closed == "ECONNRESET");
  }

  TEST_CASE("lost packets make a stream late, never wrong") {
    Pair pair(5);
    SimLink link;
    link.loss = 0.2;
    link.split = 0.3;
    pair.world.fabric().set_link(link);
    REQUIRE(pair.stand({.connect_timeout = seconds(60), .user_timeout = seconds(60)}));
    std::string wanted;
    for (int i = 0; i < 300; ++i) {
      const std::string text = std::to_string(i) + ",";
      wanted += text;
      CHECK(pair.client->write(text));
      pair.world.run_for(milliseconds(1));
    }
    pair.world.run_for(milliseconds(5));
    CHECK(pair.server->text.size() < wanted.size());
    pair.world.run_for(seconds(60));
    CHECK(pair.server->text == wanted);
  }

  TEST_CASE("bandwidth takes its time") {
    Pair pair;
    SimLink link;
    link.latency_min = link.latency_max = milliseconds(1);
    link.bytes_per_second = 1'000'000;
    pair.world.fabric().set_link(link);
    REQUIRE(pair.stand());
    const Duration begin = pair.world.elapsed();
    CHECK(pair.client->write(std::string(100'000, 'x')));
    pair.world.run_for(Duration::zero());
    CHECK(pair.client->write("."));
    pair.world.run_until([&] { return pair.server->text.ends_with("."); }, seconds(5));
    CHECK(pair.world.elapsed() - begin >= milliseconds(101));
    CHECK(pair.world.elapsed() - begin < milliseconds(102));
  }

  TEST_CASE("streams are reset on demand, and broken inside a frame") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.world.fabric().break_streams(pair.a, pair.b);
    CHECK(pair.client->write("a frame of some length"));
    pair.world.run_for(milliseconds(10));
    CHECK(pair.client->closed == "ECONNRESET");
    CHECK(pair.server->closed == "ECONNRESET");
    CHECK_FALSE(pair.server->text.empty());
    CHECK(pair.server->text.size() < 22);

    pair.server.reset();
    pair.connect();
    pair.world.run_for(milliseconds(10));
    pair.world.fabric().reset_streams(pair.a, pair.b);
    pair.world.run_for(milliseconds(1));
    CHECK(pair.client->closed == "ECONNRESET");
    CHECK(pair.server->closed == "ECONNRESET");
  }

  TEST_CASE("a host that refuses writes says when it takes them again") {
    Pair pair;
    REQUIRE(pair.stand());
    pair.a.refuse_writes(true);
    CHECK_FALSE(pair.client->write("x"));
    pair.world.run_for(seconds(5));
    CHECK(pair.client->writable == 0);
    pair.a.refuse_writes(false);
    pair.world.run_for(milliseconds(1));
    CHECK(pair.client->writable == 1);
    CHECK(pair.client->write("x"));
  }
}

}  // namespace weft
