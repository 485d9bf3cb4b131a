#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/uv_world.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::open_descriptors;
using test::StreamLog;
using test::UvWorld;

// A listener that keeps what it accepts.
struct Server {
  explicit Server(UvWorld& world, StreamOptions options = {}) : world_(world) {
    auto result = world.network.listen({"127.0.0.1", 0}, options, [this](std::unique_ptr<Stream> stream) {
      accepted.push_back(std::move(stream));
      logs.push_back(std::make_unique<StreamLog>(world_));
      accepted.back()->set_handler(*logs.back());
      world_.wake();
    });
    REQUIRE(result.ok());
    listener = std::move(*result);
  }
  [[nodiscard]] SocketAddress address() const { return listener->local_address(); }

  UvWorld& world_;
  std::vector<std::unique_ptr<StreamLog>> logs;
  std::vector<std::unique_ptr<Stream>> accepted;
  std::unique_ptr<StreamListener> listener;
};

// A listener that knows how to end a connection badly.
class RawListener {
 public:
  RawListener() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    REQUIRE(bind(descriptor_, reinterpret_cast<sockaddr*>(&address_), size) == 0);
    REQUIRE(listen(descriptor_, 1) == 0);
    REQUIRE(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address_), &size) == 0);
  }
  ~RawListener() { close(descriptor_); }
  [[nodiscard]] SocketAddress address() const { return {"127.0.0.1", ntohs(address_.sin_port)}; }
  void accept_and_reset() const {
    const int accepted = accept(descriptor_, nullptr, nullptr);
    REQUIRE(accepted >= 0);
    shutdown(accepted, SHUT_WR);
    const linger at_once{1, 0};
    setsockopt(accepted, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(accepted);
  }

 private:
  int descriptor_;
  sockaddr_in address_{};
};

// A port of 127.0.0.1 that nobody listens on.
std::uint16_t closed_port(UvWorld& world) {
  auto listener = world.network.listen({"127.0.0.1", 0}, {}, [](std::unique_ptr<Stream>) {});
  return (*listener)->local_address().port;
}

TEST_SUITE("uv stream") {
  TEST_CASE("bytes written before the connection stands arrive, and answers come back") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), {});
    stream->set_handler(log);
    CHECK(stream->write("he", "llo"));
    CHECK(stream->write(" there", ""));
    CHECK(stream->queued_bytes() == 11);
    REQUIRE(world.await([&] { return !server.logs.empty() && server.logs[0]->data == "hello there"; }));
    CHECK(server.accepted[0]->remote_address().host == "127.0.0.1");
    CHECK(stream->remote_address() == server.address());
    CHECK(stream->queued_bytes() == 0);
    CHECK(server.accepted[0]->write("hi", ""));
    REQUIRE(world.await([&] { return log.data == "hi"; }));
  }

  TEST_CASE("a name is looked up") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect({"localhost", server.address().port}, {});
    stream->set_handler(log);
    CHECK(stream->write("x", ""));
    REQUIRE(world.await([&] { return !server.logs.empty() && server.logs[0]->data == "x"; }));
  }

  TEST_CASE("a name that does not exist is a failure with its reason") {
    UvWorld world;
    StreamLog log(world);
    auto stream = world.network.connect({"no such host.invalid", 1}, {});
    stream->set_handler(log);
    REQUIRE(world.await([&] { return log.closed.has_value(); }));
    CHECK(log.closed->type() == "ENOTFOUND");
  }

  TEST_CASE("a stream destroyed during its look-up says nothing more") {
    UvWorld world;
    StreamLog log(world);
    {
      auto stream = world.network.connect({"localhost", 1}, {});
      stream->set_handler(log);
    }
    world.turn(3);
    CHECK_FALSE(log.closed.has_value());
  }

  TEST_CASE("a refused connection is told later, not from inside connect") {
    UvWorld world;
    StreamLog log(world);
    auto stream = world.network.connect({"127.0.0.1", closed_port(world)}, {});
    stream->set_handler(log);
    CHECK_FALSE(log.closed.has_value());
    REQUIRE(world.await([&] { return log.closed.has_value(); }));
    CHECK(log.closed->type() == "ECONNREFUSED");
    CHECK_FALSE(stream->write("x", ""));
  }

  TEST_CASE("an address the system refuses at once fails later too") {
    UvWorld world;
    StreamLog log(world);
    auto stream = world.network.connect({"255.255.255.255", 9}, {});
    stream->set_handler(log);
    CHECK_FALSE(log.closed.has_value());
    REQUIRE(world.await([&] { return log.closed.has_value(); }));
  }

  TEST_CASE("connecting gives up after its timeout") {
    // A listener with a full backlog answers no SYN.
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(fd, 0) == 0);
    socklen_t size = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    {
      UvWorld world;
      StreamOptions options;
      options.connect_timeout = 50ms;
      std::vector<std::unique_ptr<StreamLog>> logs;
      std::vector<std::unique_ptr<Stream>> streams;
      for (int i = 0; i < 4; ++i) {
        logs.push_back(std::make_unique<StreamLog>(world));
        streams.push_back(world.network.connect({"127.0.0.1", ntohs(address.sin_port)}, options));
        streams.back()->set_handler(*logs.back());
      }
      REQUIRE(world.await([&] {
        return std::any_of(logs.begin(), logs.end(), [](const auto& log) { return log->closed.has_value(); });
      }));
      const auto late =
          std::find_if(logs.begin(), logs.end(), [](const auto& log) { return log->closed.has_value(); });
      CHECK((*late)->closed->type() == "ETIMEDOUT");
    }
    close(fd);
  }

  TEST_CASE("the end of the peer is told once") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), {});
    stream->set_handler(log);
    REQUIRE(world.await([&] { return server.accepted.size() == 1; }));
    server.accepted.clear();
    REQUIRE(world.await([&] { return log.closed.has_value(); }));
    CHECK(log.closed->type() == "EOF");
  }

  TEST_CASE("a handler may destroy its stream from inside on_data and on_closed") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), {});
    stream->set_handler(log);
    log.during_data = [&] { stream.reset(); };
    REQUIRE(world.await([&] { return server.accepted.size() == 1; }));
    CHECK(server.accepted[0]->write("x", ""));
    REQUIRE(world.await([&] { return stream == nullptr; }));
    // The server's end sees that and destroys its own from inside.
    server.logs[0]->during_close = [&] { server.accepted.clear(); };
    REQUIRE(world.await([&] { return server.accepted.empty(); }));
    CHECK_FALSE(log.closed.has_value());
  }

  TEST_CASE("an accepted stream may be destroyed at once") {
    UvWorld world;
    auto listener = world.network.listen({"127.0.0.1", 0}, {}, [](std::unique_ptr<Stream>) {});
    StreamLog log(world);
    auto stream = world.network.connect((*listener)->local_address(), {});
    stream->set_handler(log);
    REQUIRE(world.await([&] { return log.closed.has_value(); }));
  }

  TEST_CASE("a full queue pushes back and tells when there is room again") {
    UvWorld world;
    Server server(world);
    StreamOptions options;
    options.queue_bytes_max = 4UL << 20;
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), options);
    stream->set_handler(log);
    const std::string block(100'000, 'x');
    std::size_t taken = 0;
    while (stream->write("", block)) taken += block.size();
    CHECK(taken <= options.queue_bytes_max);
    CHECK(taken + block.size() > options.queue_bytes_max);
    CHECK(stream->queued_bytes() == taken);
    CHECK(log.writable == 0);
    REQUIRE(world.await([&] { return log.writable == 1; }));
    CHECK(stream->queued_bytes() <= options.queue_bytes_max / 2);
    CHECK(stream->write("", block));
    taken += block.size();
    REQUIRE(world.await([&] { return server.logs[0]->data.size() == taken; }));
    CHECK(log.writable == 1);
  }

  TEST_CASE("bytes keep their order when the system takes them in pieces") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), {});
    stream->set_handler(log);
    std::string sent;
    for (int i = 0; i < 400; ++i) {
      std::string block = std::to_string(i) + ":";
      block.resize(50'000, static_cast<char>('a' + i % 26));
      REQUIRE(stream->write(block.substr(0, 7), block.substr(7)));
      sent += block;
      if (i % 40 == 0) world.turn();
    }
    REQUIRE(world.await([&] { return !server.logs.empty() && server.logs[0]->data.size() == sent.size(); }));
    CHECK(server.logs[0]->data == sent);
  }

  TEST_CASE("writing to a peer that is gone costs the connection, and SIGPIPE stays as it was") {
    std::signal(SIGPIPE, SIG_DFL);  // It would end this process.
    UvWorld world;
    RawListener listener;
    StreamLog log(world);
    auto stream = world.network.connect(listener.address(), {});
    stream->set_handler(log);
    CHECK(stream->write("x", ""));
    REQUIRE(world.await([&] { return stream->queued_bytes() == 0; }));
    // Its end, and a reset behind it: from here on a write is a broken pipe. Nothing of that was read yet
    // when the turn ends with the write.
    listener.accept_and_reset();
    CHECK(stream->write("y", ""));
    REQUIRE(world.await([&] { return log.closed.has_value(); }));
    CHECK(log.closed->type() == "EPIPE");
    struct sigaction now {};
    REQUIRE(sigaction(SIGPIPE, nullptr, &now) == 0);
    CHECK((now.sa_handler == SIG_DFL));
    sigset_t blocked;
    REQUIRE(pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
    CHECK(sigismember(&blocked, SIGPIPE) == 0);
  }

  TEST_CASE("closing after a flush delivers everything first") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), {});
    stream->set_handler(log);
    const std::string block(8UL << 20, 'y');
    REQUIRE(stream->write(block, "end"));
    stream->close_after_flush();
    CHECK_FALSE(stream->write("late", ""));
    REQUIRE(world.await([&] { return log.closed.has_value() && server.logs[0]->closed.has_value(); }));
    CHECK(log.closed->type() == "CLOSED");
    CHECK(server.logs[0]->data.size() == block.size() + 3);
    CHECK(server.logs[0]->closed->type() == "EOF");
  }

  TEST_CASE("destroying a stream with bytes in flight leaves nothing behind") {
    UvWorld world;
    int before = 0;
    {
      Server server(world);
      before =
          open_descriptors() - 1;  // With what libuv sets aside at the first listen, without the listener.
      StreamLog log(world);
      auto stream = world.network.connect(server.address(), {});
      stream->set_handler(log);
      REQUIRE(world.await([&] { return server.accepted.size() == 1; }));
      REQUIRE(stream->write(std::string(20UL << 20, 'z'), ""));
      world.turn();
      CHECK(stream->queued_bytes() > 0);
      stream.reset();
    }
    world.turn(2);
    CHECK(open_descriptors() == before);
  }

  TEST_CASE("500 connects and drops to ten bad peers leave the descriptors and a steady stream alone") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto steady = world.network.connect(server.address(), {});
    steady->set_handler(log);
    REQUIRE(world.await([&] { return server.accepted.size() == 1; }));
    server.logs[0]->during_data = [&] { CHECK(server.accepted[0]->write("pong", "")); };

    // Half of the bad peers drop what they accept, the others do not listen.
    std::vector<std::unique_ptr<StreamListener>> droppers;
    std::vector<SocketAddress> bad;
    for (int i = 0; i < 5; ++i) {
      droppers.push_back(
          std::move(*world.network.listen({"127.0.0.1", 0}, {}, [](std::unique_ptr<Stream>) {})));
      bad.push_back(droppers.back()->local_address());
      bad.push_back({"127.0.0.1", closed_port(world)});
    }
    world.turn(2);
    const int before = open_descriptors();
    std::size_t pongs = 0;
    for (int round = 0; round < 50; ++round) {
      std::vector<std::unique_ptr<StreamLog>> logs;
      std::vector<std::unique_ptr<Stream>> streams;
      for (const SocketAddress& peer : bad) {
        logs.push_back(std::make_unique<StreamLog>(world));
        streams.push_back(world.network.connect(peer, {}));
        streams.back()->set_handler(*logs.back());
        CHECK(streams.back()->write("hello", ""));
      }
      REQUIRE(steady->write("ping", ""));
      ++pongs;
      REQUIRE(world.await([&] {
        return log.data.size() == 4 * pongs && std::all_of(logs.begin(), logs.end(), [](const auto& each) {
                 return each->closed.has_value();
               });
      }));
    }
    world.turn(2);
    CHECK(open_descriptors() == before);
    CHECK_FALSE(log.closed.has_value());
  }

  TEST_CASE("a port that is taken is an error with its reason") {
    UvWorld world;
    Server server(world);
    auto second = world.network.listen(server.address(), {}, [](std::unique_ptr<Stream>) {});
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().type() == "EADDRINUSE");
  }

  TEST_CASE("an empty host listens for IPv4 as well, and peers show their IPv4 address") {
    UvWorld world;
    std::unique_ptr<Stream> accepted;
    auto listener = world.network.listen({"", 0}, {}, [&](std::unique_ptr<Stream> stream) {
      accepted = std::move(stream);
      world.wake();
    });
    REQUIRE(listener.ok());
    auto stream = world.network.connect({"127.0.0.1", (*listener)->local_address().port}, {});
    REQUIRE(world.await([&] { return accepted != nullptr; }));
    CHECK(accepted->remote_address().host == "127.0.0.1");
  }

  TEST_CASE("write() and upcalls never nest") {
    UvWorld world;
    Server server(world);
    StreamLog log(world);
    auto stream = world.network.connect(server.address(), {});
    stream->set_handler(log);
    REQUIRE(world.await([&] { return server.accepted.size() == 1; }));
    server.accepted.clear();  // The next writes meet a reset.
    world.turn();
    bool inside = false;
    log.during_close = [&] { CHECK_FALSE(inside); };
    for (int i = 0; i < 100 && !log.closed; ++i) {
      inside = true;
      static_cast<void>(stream->write("x", ""));
      inside = false;
      world.turn();
    }
    CHECK(world.await([&] { return log.closed.has_value(); }));
  }
}

}  // namespace
}  // namespace weft
