// Request and reply over a nats-server: two NatsTransporters on loops of their own, in two processes, beside
// the client library used bare in its quickest way (its event loop mode, driven by poll(2), synchronous
// subscriptions). Prints a table.
//
// Rounds of both alternate, and the best round of each counts: on a shared machine the others tell of its
// other users.
//
//   nats_bench [rounds] [seconds per round]

#include <nats/nats.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lib/uv/uv_loop.h"
#include "lib/uv/uv_poller.h"
#include "tests/support/nats_server.h"
#include "transporters/nats/nats_transporter.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPayloadBytes = 300;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Figures {
  double calls_per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
  double cpu_us = 0;  // Of the caller, for each call.
};

// One round: keeps so many calls in flight, and notes how long each took.
class Run {
 public:
  Run(int in_flight, double seconds) : in_flight_(in_flight), seconds_(seconds), sent_at_(in_flight) {}

  // Sends all first calls; `send` takes a slot, which comes back with done().
  template <typename Send>
  void begin(Send send) {
    start_ = Clock::now();
    cpu_start_ = cpu_seconds();
    for (int slot = 0; slot < in_flight_; ++slot) {
      sent_at_[slot] = Clock::now();
      send(slot);
    }
  }
  // True while the slot is to be used again.
  bool done(int slot) {
    const auto now = Clock::now();
    took_.push_back(std::chrono::duration<double, std::micro>(now - sent_at_[slot]).count());
    if (std::chrono::duration<double>(now - start_).count() >= seconds_) {
      is_over_ = ++returned_ == in_flight_;
      return false;
    }
    sent_at_[slot] = now;
    return true;
  }
  [[nodiscard]] bool is_over() const { return is_over_; }

  [[nodiscard]] Figures figures() {
    const double wall = std::chrono::duration<double>(Clock::now() - start_).count();
    const double cpu = cpu_seconds() - cpu_start_;
    std::sort(took_.begin(), took_.end());
    const auto count = static_cast<double>(took_.size());
    return {count / wall, took_[took_.size() / 2], took_[took_.size() * 99 / 100], cpu / count * 1e6};
  }

 private:
  const int in_flight_;
  const double seconds_;
  std::vector<Clock::time_point> sent_at_;
  std::vector<double> took_;
  Clock::time_point start_;
  double cpu_start_ = 0;
  int returned_ = 0;
  bool is_over_ = false;
};

// The client library and a socket to poll, nothing else.
class Bare {
 public:
  explicit Bare(const std::string& url) {
    natsOptions* options = nullptr;
    natsOptions_Create(&options);
    natsOptions_SetURL(options, url.c_str());
    natsOptions_SetSendAsap(options, true);
    natsOptions_SetPingInterval(options, 0);
    natsOptions_SetEventLoop(
        options, this,
        [](void** data, void* loop, natsConnection*, natsSock socket) {
          static_cast<Bare*>(loop)->socket_ = socket;
          *data = loop;
          return NATS_OK;
        },
        [](void*, bool) { return NATS_OK; },
        [](void* data, bool wanted) {
          static_cast<Bare*>(data)->is_write_wanted_ = wanted;
          return NATS_OK;
        },
        [](void*) { return NATS_OK; });
    if (natsConnection_Connect(&connection_, options) != NATS_OK) std::abort();
    natsOptions_Destroy(options);
  }

  void subscribe(const char* subject) { natsConnection_SubscribeSync(&subscription_, connection_, subject); }
  void publish(const char* subject, const char* reply, std::string_view payload) {
    const int bytes = static_cast<int>(payload.size());
    if (reply == nullptr) {
      natsConnection_Publish(connection_, subject, payload.data(), bytes);
    } else {
      natsConnection_PublishRequest(connection_, subject, reply, payload.data(), bytes);
    }
  }
  // Waits, reads once, hands over what came, writes once.
  template <typename OnMessage>
  void turn(OnMessage on_message) {
    pollfd waited{socket_, static_cast<short>(POLLIN | (is_write_wanted_ ? POLLOUT : 0)), 0};
    poll(&waited, 1, -1);
    if ((waited.revents & (POLLIN | POLLHUP)) != 0) {
      natsConnection_ProcessReadEvent(connection_);
      natsMsg* message = nullptr;
      while (natsSubscription_NextMsg(&message, subscription_, 0) == NATS_OK) {
        on_message(message);
        natsMsg_Destroy(message);
      }
    }
    if (is_write_wanted_) natsConnection_ProcessWriteEvent(connection_);
  }
  // Behind it the server has taken what was written.
  void round_trip() {
    natsSubscription* echo = nullptr;
    natsConnection_SubscribeSync(&echo, connection_, "BARE.ECHO");
    publish("BARE.ECHO", nullptr, "x");
    natsMsg* message = nullptr;
    while (natsSubscription_NextMsg(&message, echo, 0) != NATS_OK) turn([](const natsMsg*) {});
    natsMsg_Destroy(message);
    natsSubscription_Destroy(echo);
    write();
  }
  void write() {
    while (is_write_wanted_) natsConnection_ProcessWriteEvent(connection_);
  }

 private:
  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  natsSock socket_ = -1;
  bool is_write_wanted_ = false;
};

// Writes a byte to `ready` when requests may come.
[[noreturn]] void serve_bare(const std::string& url, int ready) {
  Bare bare(url);
  bare.subscribe("BARE.REQ");
  bare.write();
  bare.round_trip();
  if (::write(ready, "x", 1) != 1) std::abort();
  while (true) {
    bare.turn([&](const natsMsg* request) {
      bare.publish(natsMsg_GetReply(request), nullptr,
                   {natsMsg_GetData(request), static_cast<std::size_t>(natsMsg_GetDataLength(request))});
    });
  }
}

Figures call_bare(const std::string& url, int in_flight, double seconds) {
  Bare bare(url);
  bare.subscribe("BARE.INBOX.*");
  Run run(in_flight, seconds);
  const std::string payload(kPayloadBytes, 'x');
  const auto send = [&](int slot) {
    bare.publish("BARE.REQ", ("BARE.INBOX." + std::to_string(slot)).c_str(), payload);
  };
  run.begin(send);
  bare.write();
  while (!run.is_over()) {
    bare.turn([&](const natsMsg* reply) {
      const int slot = std::atoi(natsMsg_GetSubject(reply) + 11);
      if (run.done(slot)) send(slot);
    });
  }
  return run.figures();
}

struct Node : Transporter::Listener {
  Node(const std::string& url, const char* id)
      : nats(loop, poller, random, Logger(), {.url = url}), transporter(nats) {
    transporter.start({id, "bench"}, *this, [](Result<> outcome) {
      if (!outcome.ok()) std::abort();
    });
  }
  void on_reconnected() override {}
  void on_disconnected(const Error&) override {}
  void on_node_sighted(std::string_view, const SocketAddress&, bool) override {}
  void on_node_lost(std::string_view, const Error&) override {}
  void on_undelivered(std::string_view, std::string_view) override {}

  UvLoop loop;
  UvPoller poller{loop};
  SeededRandom random{1};
  NatsTransporter nats;
  Transporter& transporter;
};

struct Server final : Node {
  explicit Server(const std::string& url) : Node(url, "server") {}
  void on_frame(const FrameView& frame) override {
    if (frame.type == PacketType::kPing) {
      static_cast<void>(transporter.send("client", PacketType::kPong, frame.payload));
    } else {
      static_cast<void>(transporter.send("client", PacketType::kResponse, frame.payload));
    }
  }
};

struct Client final : Node {
  Client(const std::string& url, int in_flight, double seconds)
      : Node(url, "client"), run(in_flight, seconds) {
    find_server();
  }
  // Until it answers.
  void find_server() {
    static_cast<void>(transporter.send("server", PacketType::kPing, "x"));
    timer.set_after(loop, std::chrono::milliseconds(10), [this] { find_server(); });
  }
  void send(int slot) {
    const std::string number = std::to_string(slot);
    payload.replace(0, number.size() + 1, number + ' ');
    static_cast<void>(transporter.send("server", PacketType::kRequest, payload, number));
  }
  void on_frame(const FrameView& frame) override {
    if (frame.type == PacketType::kPong) {
      if (!timer.active()) return;
      timer.cancel();
      return run.begin([this](int slot) { send(slot); });
    }
    const int slot = std::atoi(frame.payload.data());
    if (run.done(slot)) send(slot);
    if (run.is_over()) loop.stop();
  }

  Run run;
  std::string payload = std::string(kPayloadBytes, 'x');
  Timer timer;
};

Figures call_weft(const std::string& url, int in_flight, double seconds) {
  Client client(url, in_flight, seconds);
  client.loop.run();
  return client.run.figures();
}

// The library's threads do not survive a fork: whoever uses it is a process of its own.
template <typename Work>
pid_t in_process(Work work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::exit(0);
  }
  return child;
}

using Call = Figures (*)(const std::string& url, int in_flight, double seconds);

Figures in_round(Call call, const std::string& url, int in_flight, double seconds) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = in_process([&] {
    const Figures figures = call(url, in_flight, seconds);
    if (write(ends[1], &figures, sizeof figures) != sizeof figures) std::abort();
  });
  close(ends[1]);
  Figures figures;
  if (read(ends[0], &figures, sizeof figures) != sizeof figures) std::abort();
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return figures;
}

void keep_best(Figures& best, const Figures& round) {
  if (best.p50_us == 0 || round.p50_us < best.p50_us) best = round;
}

void print(const char* what, int in_flight, const Figures& figures) {
  std::printf("%-22s %9d %10.0f/s %9.1f us %9.1f us %8.2f us\n", what, in_flight, figures.calls_per_second,
              figures.p50_us, figures.p99_us, figures.cpu_us);
  std::fflush(stdout);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using namespace weft;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  test::NatsServer server;
  const std::string url = server.url();
  int ready[2];
  if (pipe(ready) != 0) return EXIT_FAILURE;
  const pid_t bare_server = in_process([&] { serve_bare(url, ready[1]); });
  const pid_t weft_server = in_process([&] { Server(url).loop.run(); });
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) return EXIT_FAILURE;

  std::printf("%-22s %9s %12s %12s %12s %11s\n", "300 bytes there and back", "in flight", "calls", "p50",
              "p99", "caller CPU");
  for (const int in_flight : {1, 64, 1000}) {
    Figures bare, ours;
    for (int round = 0; round < rounds; ++round) {
      keep_best(bare, in_round(call_bare, url, in_flight, seconds));
      keep_best(ours, in_round(call_weft, url, in_flight, seconds));
    }
    print("bare cnats", in_flight, bare);
    print("weft NatsTransporter", in_flight, ours);
    std::printf("%-22s %9s %11.2fx %11.2fx %11.2fx %10.2fx\n", "  ours to bare", "",
                ours.calls_per_second / bare.calls_per_second, ours.p50_us / bare.p50_us,
                ours.p99_us / bare.p99_us, ours.cpu_us / bare.cpu_us);
  }
  for (const pid_t child : {bare_server, weft_server}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}
