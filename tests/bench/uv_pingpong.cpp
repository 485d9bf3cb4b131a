// What sockets allow: 200-byte messages to another process and back, 1, 256 and 1000 in flight. Three ways:
// bare blocking sockets, lib/uv streams, and the TCP transporter. What the mesh costs above that is weft's
// own. No test: numbers of a shared machine prove nothing; the ratios between the rows do.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/assert.h"
#include "lib/uv/uv_loop.h"
#include "lib/uv/uv_network.h"
#include "transporters/tcp/tcp_transporter.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;

constexpr std::size_t kMessageBytes = 200;
constexpr Duration kRunFor = 2s;

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Messages sent and come back, with the time of sending in front.
class Meter {
 public:
  explicit Meter(std::size_t in_flight) : in_flight_(in_flight) { latencies_.reserve(1 << 20); }

  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  const std::string& next() {
    const std::int64_t now = now_ns();
    std::memcpy(message_.data(), &now, sizeof now);
    return message_;
  }
  void back(const char* message) {
    std::int64_t sent = 0;
    std::memcpy(&sent, message, sizeof sent);
    ++count_;
    if (latencies_.size() < latencies_.capacity()) latencies_.push_back(now_ns() - sent);
  }
  [[nodiscard]] bool over() const { return now_ns() - begin_ > kRunFor.count(); }

  void report(const char* what, double cpu_before) {
    const double seconds = 1e-9 * static_cast<double>(now_ns() - begin_);
    std::sort(latencies_.begin(), latencies_.end());
    const auto at = [&](std::size_t percent) {
      return 1e-3 * static_cast<double>(latencies_[latencies_.size() * percent / 100]);
    };
    // The other process's part is added once it was waited for.
    const double cpu = cpu_seconds(RUSAGE_SELF) - cpu_before + cpu_seconds(RUSAGE_CHILDREN);
    std::printf("%-14s %5zu in flight  %9.0f msg/s  p50 %8.1f us  p99 %8.1f us  cpu %6.2f us\n", what,
                in_flight_, static_cast<double>(count_) / seconds, at(50), at(99),
                1e6 * cpu / static_cast<double>(count_));
    std::fflush(stdout);
  }

 private:
  const std::size_t in_flight_;
  std::string message_ = std::string(kMessageBytes, 'x');
  std::size_t count_ = 0;
  std::vector<std::int64_t> latencies_;
  const std::int64_t begin_ = now_ns();
};

struct Pipe {
  Pipe() { WEFT_ASSERT(pipe(ends.data()) == 0); }
  void send(std::uint16_t port) const { WEFT_ASSERT(write(ends[1], &port, sizeof port) == sizeof port); }
  [[nodiscard]] std::uint16_t receive() const {
    std::uint16_t port = 0;
    WEFT_ASSERT(read(ends[0], &port, sizeof port) == sizeof port);
    return port;
  }
  std::array<int, 2> ends{};
};

// --- bare sockets -----------------------------------------------------------------------------------------

void read_all(int fd, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t got = read(fd, bytes, count);
    if (got <= 0) std::exit(0);
    bytes += got;
    count -= static_cast<std::size_t>(got);
  }
}

int tcp_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void bare_server(const Pipe& to_client, const Pipe&) {
  const int listener = tcp_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  WEFT_ASSERT(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  to_client.send(ntohs(address.sin_port));
  const int fd = accept(listener, nullptr, nullptr);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::array<char, kMessageBytes> message{};
  for (;;) {
    read_all(fd, message.data(), message.size());
    if (write(fd, message.data(), message.size()) < 0) std::exit(0);
  }
}

void bare_client(const Pipe& from_server, const Pipe&, Meter& meter) {
  const int fd = tcp_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(from_server.receive());
  WEFT_ASSERT(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  std::array<char, kMessageBytes> message{};
  while (!meter.over()) {
    const std::string& out = meter.next();
    WEFT_ASSERT(write(fd, out.data(), out.size()) == static_cast<ssize_t>(out.size()));
    read_all(fd, message.data(), message.size());
    meter.back(message.data());
  }
  close(fd);
}

// --- lib/uv streams ---------------------------------------------------------------------------------------

struct Echo final : Stream::Handler {
  explicit Echo(UvLoop& owner) : loop(owner) {}
  void on_data(BytesView bytes) override { WEFT_ASSERT(stream->write(bytes, {})); }
  void on_closed(const Error&) override { loop.stop(); }
  UvLoop& loop;
  std::unique_ptr<Stream> stream;
};

void uv_server(const Pipe& to_client, const Pipe&) {
  UvLoop loop;
  UvNetwork network(loop);
  Echo echo(loop);
  auto listener = network.listen({"127.0.0.1", 0}, {}, [&](std::unique_ptr<Stream> stream) {
    echo.stream = std::move(stream);
    echo.stream->set_handler(echo);
  });
  to_client.send((*listener)->local_address().port);
  loop.run();
}

struct UvClient final : Stream::Handler {
  UvClient(UvLoop& owner, Meter& the_meter) : loop(owner), meter(the_meter) {}
  void on_data(BytesView bytes) override {
    while (!bytes.empty()) {
      const std::size_t count = std::min(kMessageBytes - held, bytes.size());
      std::memcpy(message.data() + held, bytes.data(), count);
      bytes.remove_prefix(count);
      held = (held + count) % kMessageBytes;
      if (held != 0) return;
      meter.back(message.data());
      WEFT_ASSERT(stream->write(meter.next(), {}));
    }
    if (meter.over()) loop.stop();
  }
  void on_closed(const Error&) override { std::abort(); }
  UvLoop& loop;
  Meter& meter;
  std::unique_ptr<Stream> stream;
  std::array<char, kMessageBytes> message{};
  std::size_t held = 0;
};

void uv_client(const Pipe& from_server, const Pipe&, Meter& meter) {
  UvLoop loop;
  UvNetwork network(loop);
  UvClient client(loop, meter);
  client.stream = network.connect({"127.0.0.1", from_server.receive()}, {});
  client.stream->set_handler(client);
  for (std::size_t i = 0; i < meter.in_flight(); ++i) WEFT_ASSERT(client.stream->write(meter.next(), {}));
  loop.run();
}

// --- the TCP transporter ----------------------------------------------------------------------------------

struct Node : Transporter::Listener {
  explicit Node(const std::string& node_id) : transporter(loop, network, Logger(), options()) {
    transporter.start({node_id, ""}, *this, [this](Result<> outcome) {
      WEFT_ASSERT(outcome.ok());
      transporter.set_greeting("{}");
      loop.stop();
    });
    loop.run();
  }
  static TcpOptions options() {
    TcpOptions options;
    options.host = "127.0.0.1";
    options.udp_discovery = false;
    return options;
  }
  void on_reconnected() override {}
  void on_disconnected(const Error&) override {}
  void on_node_sighted(std::string_view, const SocketAddress&, bool) override {}
  void on_node_lost(std::string_view, const Error&) override { loop.stop(); }
  void on_undelivered(std::string_view, std::string_view) override {}

  UvLoop loop;
  UvNetwork network{loop};
  TcpTransporter transporter;
};

struct EchoNode final : Node {
  EchoNode() : Node("server") {}
  void on_frame(const FrameView& frame) override {
    if (frame.type != PacketType::kRequest) return;
    WEFT_ASSERT(transporter.send("client", PacketType::kResponse, frame.payload, {}).ok());
  }
};

struct ClientNode final : Node {
  explicit ClientNode(Meter& the_meter) : Node("client"), meter(the_meter) {}
  void on_frame(const FrameView& frame) override {
    if (frame.type != PacketType::kResponse) return;
    meter.back(frame.payload.data());
    if (meter.over()) loop.stop();
    send();
  }
  void send() { WEFT_ASSERT(transporter.send("server", PacketType::kRequest, meter.next(), {}).ok()); }
  Meter& meter;
};

void tcp_server(const Pipe& to_client, const Pipe& from_client) {
  EchoNode node;
  to_client.send(node.transporter.listen_address().port);
  node.transporter.learn_address("client", {"127.0.0.1", from_client.receive()});
  node.loop.run();
}

void tcp_client(const Pipe& from_server, const Pipe& to_server, Meter& meter) {
  ClientNode node(meter);
  to_server.send(node.transporter.listen_address().port);
  node.transporter.learn_address("server", {"127.0.0.1", from_server.receive()});
  for (std::size_t i = 0; i < meter.in_flight(); ++i) node.send();
  node.loop.run();
}

using Server = void (*)(const Pipe& to_client, const Pipe& from_client);
using Client = void (*)(const Pipe& from_server, const Pipe& to_server, Meter& meter);

// In a process of its own, so that CPU time of children is that of one server.
void measure(const char* what, std::size_t in_flight, Server server, Client client) {
  const pid_t run = fork();
  if (run == 0) {
    const Pipe down;
    const Pipe up;
    const pid_t child = fork();
    if (child == 0) {
      server(down, up);
      std::exit(0);
    }
    const double cpu_before = cpu_seconds(RUSAGE_SELF);
    Meter meter(in_flight);
    client(down, up, meter);
    waitpid(child, nullptr, 0);
    meter.report(what, cpu_before);
    std::exit(0);
  }
  waitpid(run, nullptr, 0);
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  measure("bare sockets", 1, bare_server, bare_client);
  for (const std::size_t in_flight : {1UL, 256UL, 1000UL}) {
    measure("uv streams", in_flight, uv_server, uv_client);
    measure("tcp frames", in_flight, tcp_server, tcp_client);
  }
  return 0;
}
