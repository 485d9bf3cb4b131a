// Workers that behave badly: what the others and their callers notice.

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "lib/protocol/serializer.h"
#include "tests/chaos/mesh.h"
#include "tests/support/nats_server.h"
#include "transporters/tcp/frame.h"

namespace weft::chaos {

using namespace std::chrono_literals;

namespace {

void on_each_carrier(const std::function<void(const std::string& transporter)>& story) {
  SUBCASE("TCP") {
    story("TCP");
  }
  SUBCASE("NATS") {
    test::NatsServer server;
    story(server.url());
  }
}

void none_failed(const Load& load) {
  if (!load.failures().empty()) FAIL_CHECK(load.failures().front().error.to_string());
  CHECK(load.failures().empty());
}

// A worker whose log can be read once it has ended.
class LoggedWorker {
 public:
  LoggedWorker(const Mesh& mesh, const std::string& id, WorkerProcess::Environment more = {})
      : process(launch(mesh, id, std::move(more))) {}
  ~LoggedWorker() { std::remove(path_.c_str()); }

  [[nodiscard]] std::string log() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  WorkerProcess launch(const Mesh& mesh, const std::string& id, WorkerProcess::Environment more) {
    path_ = std::filesystem::temp_directory_path() / "weft-chaos-XXXXXX";
    const int descriptor = mkstemp(path_.data());
    REQUIRE(descriptor >= 0);
    close(descriptor);
    WorkerProcess::Environment all = mesh.environment(id);
    more.emplace_back("LOGLEVEL", "warn");
    more.emplace_back("CHAOS_LOG", path_);
    all.insert(all.end(), more.begin(), more.end());
    return WorkerProcess({"/bin/sh", "-c", R"(exec "$0" "$@" >"$CHAOS_LOG" 2>&1)", required("TEST_RUNNER"),
                          required("TEST_MODULE")},
                         all);
  }

  std::string path_;

 public:
  WorkerProcess process;
};

std::size_t resident_mib() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) >> 20;
}

// Writes `bytes` to a port of this host over and over, in a thread of its own, until it goes out of scope.
class Flood {
 public:
  Flood(std::uint16_t port, std::string opening, std::string bytes) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    thread_ = std::thread([this, opening = std::move(opening), bytes = std::move(bytes)] {
      if (!write_all(opening)) return;
      while (!stop_ && write_all(bytes)) ++rounds_;
    });
  }
  ~Flood() {
    stop_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  bool write_all(std::string_view bytes) {
    while (!bytes.empty() && !stop_) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  int socket_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::thread thread_;
};

std::string frame(PacketType type, const std::string& payload) {
  const FrameHeader header = make_frame_header(type, payload.size());
  return std::string(header.data(), header.size()) + payload;
}

// An answer that nobody waits for.
std::string stray_response(int number) {
  char id[64];
  std::snprintf(id, sizeof id, "%08x-0000-4000-8000-%012x", static_cast<unsigned>(number),
                static_cast<unsigned>(number));
  return std::string(R"({"ver":"5","sender":"flood","id":")") + id +
         R"(","success":true,"data":{"text":"nobody asked for this"},"meta":{}})";
}

}  // namespace

TEST_SUITE("rogue") {
  TEST_CASE("a worker that crashes or throws while it starts ends with a reason, and disturbs nobody") {
    on_each_carrier([](const std::string& transporter) {
      Mesh mesh(transporter);
      WorkerProcess w1 = mesh.worker("w1"), w2 = mesh.worker("w2");
      mesh.run([&](Broker& broker) -> Task<void> {
        co_await workers_are(broker, 2);
        Load load(broker, {.rate = 600, .retries = 1});
        for (const char* kind : {"throw", "foreign", "abort"}) {
          CAPTURE(kind);
          const std::string id = std::string("bomb-") + kind;
          LoggedWorker bomb(mesh, id, {{"CHAOS_BOMB", kind}});
          const int code = co_await exit_of(broker, bomb.process);
          const std::string log = bomb.log();
          if (std::string_view(kind) == "abort") {
            CHECK(code == 128 + SIGABRT);
          } else {
            CHECK(code == 1);
            CHECK_MESSAGE(log.find("bomb") != std::string::npos, log);
          }
          co_await node_is(broker, id, false);
          CHECK_FALSE(broker.node_list(true, true).items().empty());
          const auto never = co_await broker.try_call("bomb.work");
          CHECK(never.error().code() == 404);
          co_await load.more(200);
        }
        (void)co_await load.finish();
        none_failed(load);
      });
    });
  }

  TEST_CASE("a worker that dies in its start again and again leaves no trace in the traffic") {
    on_each_carrier([](const std::string& transporter) {
      Mesh mesh(transporter);
      WorkerProcess w1 = mesh.worker("w1"), w2 = mesh.worker("w2");
      mesh.run([&](Broker& broker) -> Task<void> {
        co_await workers_are(broker, 2);
        Load load(broker, {.rate = 600, .retries = 1});
        for (int i = 0; i < 5; ++i) {
          LoggedWorker bomb(mesh, "phoenix", {{"CHAOS_BOMB", "abort"}});
          const int code = co_await exit_of(broker, bomb.process);
          CHECK(code == 128 + SIGABRT);
        }
        co_await node_is(broker, "phoenix", false);
        WorkerProcess phoenix = mesh.worker("phoenix");
        co_await workers_are(broker, 3);
        co_await load.more(300);
        const auto answer =
            co_await broker.try_call<std::string>("chaos.work", {{"ms", 0}}, {.node = "phoenix"});
        CHECK(answer.ok());
        (void)co_await load.finish();
        none_failed(load);
      });
    });
  }

  TEST_CASE("an exception of foreign type is an error of its call, and nothing else") {
    on_each_carrier([](const std::string& transporter) {
      Mesh mesh(transporter);
      LoggedWorker w1(mesh, "w1");
      mesh.run([&](Broker& broker) -> Task<void> {
        co_await workers_are(broker, 1);
        mesh.sightings().clear();
        for (int i = 0; i < 20; ++i) {
          for (const char* action : {"chaos.foreign", "chaos.foreign_later"}) {
            const auto answer = co_await broker.try_call(action);
            REQUIRE_FALSE(answer.ok());
            CHECK(answer.error().code() == 500);
            CHECK_FALSE(answer.error().message().empty());
          }
          broker.emit("chaos.foreign");
          const auto answer = co_await broker.try_call<std::string>("chaos.work", {{"ms", 1}});
          CHECK(answer.ok());
        }
        CHECK(mesh.sightings().count("client", "w1", false) == 0);
        w1.process.signal(SIGTERM);
        const int code = co_await exit_of(broker, w1.process);
        CHECK(code == 0);
      });
      CHECK(w1.log().find("chaos.foreign") !=
            std::string::npos);  // The event's failure has nowhere else to go.
    });
  }

  TEST_CASE("a handler that blocks the loop for 3 s: others serve on, and nothing fails") {
    on_each_carrier([](const std::string& transporter) {
      Mesh mesh(transporter);
      LoggedWorker w1(mesh, "w1");
      WorkerProcess w2 = mesh.worker("w2"), w3 = mesh.worker("w3");
      mesh.run([&](Broker& broker) -> Task<void> {
        co_await workers_are(broker, 3);
        Load load(broker, {.rate = 600});
        co_await load.more(300);
        for (const char* action : {"chaos.block", "chaos.block_later"}) {
          CAPTURE(action);
          auto blocked = broker.try_call<std::string>(action, {{"ms", 3000}}, {.node = "w1"});
          co_await node_is(broker, "w1", false);
          load.forget_slowest();
          const auto before = load.served();
          co_await load.more(200);  // Of those made since then, all are served by the others.
          CHECK(load.slowest() < 2500ms);
          CHECK(load.served().at("w2") - before.at("w2") >= 50);
          CHECK(load.served().at("w3") - before.at("w3") >= 50);
          const auto answer = co_await std::move(blocked);
          if (!answer) FAIL_CHECK(answer.error().to_string());
          co_await node_is(broker, "w1", true);
          co_await load.more(300);
        }
        // One that says that it blocks holds nobody up.
        mesh.sightings().clear();
        auto well = broker.try_call<std::string>("chaos.block_well", {{"ms", 2500}}, {.node = "w1"});
        const auto answer = co_await std::move(well);
        CHECK(answer.ok());
        CHECK(mesh.sightings().count("client", "w1", false) == 0);
        (void)co_await load.finish();
        none_failed(load);
        w1.process.signal(SIGTERM);
        (void)co_await exit_of(broker, w1.process);
      });
    });
  }

  TEST_CASE("a flood of answers that nobody asked for: calls are served beside it, and memory stays flat") {
    std::string opening, bytes;
    const auto check = [&](Mesh& mesh, std::uint16_t port) {
      WorkerProcess w1 = mesh.worker("w1"), w2 = mesh.worker("w2");
      mesh.run([&](Broker& broker) -> Task<void> {
        co_await workers_are(broker, 2);
        Load load(broker, {.rate = 600});
        co_await load.more(300);
        load.forget_slowest();
        const std::size_t before_mib = resident_mib();
        Flood flood(port, opening, bytes);
        co_await load.more(1500);
        const std::size_t after_mib = resident_mib();
        MESSAGE(flood.rounds() * 1000, " stray answers; the slowest call took ", to_ms(load.slowest()),
                " ms; memory ", before_mib, " to ", after_mib, " MiB");
        CHECK(flood.rounds() > 10);
        CHECK(load.slowest() < 2s);
        CHECK(after_mib < before_mib + 32);
        (void)co_await load.finish();
        none_failed(load);
      });
    };
    SUBCASE("TCP") {
      Mesh mesh("TCP");
      opening =
          frame(PacketType::kGossipHello, R"({"ver":"5","sender":"flood","host":"127.0.0.1","port":1})");
      for (int i = 0; i < 1000; ++i) bytes += frame(PacketType::kResponse, stray_response(i));
      check(mesh, static_cast<std::uint16_t>(mesh.client_port()));
    }
    SUBCASE("NATS") {
      test::NatsServer server;
      Mesh mesh(server.url());
      opening = "CONNECT {\"verbose\":false}\r\n";
      for (int i = 0; i < 1000; ++i) {
        const std::string response = stray_response(i);
        bytes += "PUB MOL.RES.client " + std::to_string(response.size()) + "\r\n" + response + "\r\n";
      }
      check(mesh, server.port());
    }
  }
}

}  // namespace weft::chaos
