// Real processes, killed under traffic: what a caller notices.

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>

#include "lib/loop/signal.h"
#include "lib/loop/when_all.h"
#include "tests/support/nats_server.h"
#include "tests/support/worker_process.h"
#include "weft/weft.h"

namespace weft {

using namespace std::chrono_literals;
using test::WorkerProcess;

namespace {

constexpr auto kPatience = 20s;  // Of waits that end by an event; longer than any machine needs.

std::string required(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE_MESSAGE(value != nullptr, name);
  return value;
}

// A client in this process, workers in others.
class Mesh {
 public:
  explicit Mesh(const std::string& transporter) : transporter_(transporter) {
    AppOptions options;
    options.node_id = "client";
    options.transporter = transporter;
    options.log_level = LogLevel::kError;
    options.tcp.host = "127.0.0.1";
    options.tcp.use_hostname = false;
    options.tcp.udp_discovery = false;
    app_ = std::make_unique<App>(std::move(options));
    app_->start();
    port_ = app_->call("$node.list")[0]["port"].i64_or(0);
  }
  ~Mesh() { app_->stop(); }

  WorkerProcess worker(const std::string& id) const {
    return WorkerProcess({required("TEST_RUNNER"), required("TEST_FIXTURE")},
                         {{"NODEID", id},
                          {"TRANSPORTER", transporter_},
                          {"TCP_HOST", "127.0.0.1"},
                          {"TCP_USE_HOSTNAME", "false"},
                          {"UDP_DISCOVERY", "false"},
                          {"TCP_URLS", "127.0.0.1:" + std::to_string(port_) + "/client"},
                          {"LOGLEVEL", "error"}});
  }

  void run(std::function<Task<void>(Broker&)> work) { app_->run_on_loop(std::move(work)); }

 private:
  std::string transporter_;
  std::unique_ptr<App> app_;
  std::int64_t port_ = 0;
};

// Callers that call without pause, and what came of it.
struct Traffic {
  explicit Traffic(Broker& owner, int tries_again) : broker(owner), retries(tries_again) {}

  Broker& broker;
  int retries;
  bool stop = false;
  std::uint64_t calls = 0;
  std::vector<Error> failures;
  std::vector<Instant> failed_at;
  Signal progress;

  Task<void> lane() {
    while (!stop) {
      CallOptions options;
      options.retries = retries;
      auto answer = co_await broker.try_call("echo.sleep", {{"ms", 1}}, options);
      ++calls;
      if (!answer) {
        failures.push_back(answer.error());
        failed_at.push_back(broker.now());
      }
      progress.notify();
    }
  }
  // Lets `count` further calls end.
  Task<void> more(std::uint64_t count) {
    const std::uint64_t goal = calls + count;
    const Instant deadline = broker.now() + kPatience;
    while (calls < goal) {
      const bool woken = co_await progress.wait(broker.runtime().loop, deadline);
      REQUIRE_MESSAGE(woken, "the traffic stands still");
    }
  }
};

// Waits until exactly `count` workers are available.
Task<void> workers_are(Broker& broker, std::size_t count) {
  Signal changed;
  const LocalListener listener =
      broker.on_local("$services.changed", [&changed](std::string_view, const Value&) { changed.notify(); });
  const Instant deadline = broker.now() + kPatience;
  while (true) {
    std::size_t available = 0;
    const Value actions =
        co_await broker.call("$node.actions", {{"withEndpoints", true}, {"skipInternal", true}});
    for (const Value& action : actions.items()) {
      if (action["name"].str_or({}) == "echo.sleep") available = action["endpoints"].size();
    }
    if (available == count) co_return;
    const bool woken = co_await changed.wait(broker.runtime().loop, deadline);
    REQUIRE_MESSAGE(woken, "workers: ", available, " instead of ", count);
  }
}

void check_failover(const std::string& transporter) {
  CAPTURE(transporter);
  Mesh mesh(transporter);
  constexpr int kLanes = 24;

  SUBCASE("with retries no call fails, whoever dies, leaves or comes") {
    WorkerProcess w1 = mesh.worker("w1"), w2 = mesh.worker("w2"), w3 = mesh.worker("w3");
    std::unique_ptr<WorkerProcess> w4;
    mesh.run([&](Broker& broker) -> Task<void> {
      co_await workers_are(broker, 3);
      Traffic traffic(broker, 2);
      const auto story = [&](Traffic& t) -> Task<void> {
        co_await t.more(300);
        w2.signal(SIGKILL);
        co_await workers_are(broker, 2);
        co_await t.more(300);
        w1.signal(SIGTERM);
        co_await workers_are(broker, 1);
        w4 = std::make_unique<WorkerProcess>(mesh.worker("w4"));
        co_await workers_are(broker, 2);
        co_await t.more(300);
        t.stop = true;
      };
      std::vector<Task<void>> tasks;
      tasks.push_back(story(traffic));
      for (int i = 0; i < kLanes; ++i) tasks.push_back(traffic.lane());
      WhenAll all = when_all(std::move(tasks));
      const auto thrown = co_await all;
      for (const auto& failure : thrown) CHECK_FALSE(failure);
      for (const Error& failure : traffic.failures) FAIL_CHECK(failure.to_string());
      CHECK(traffic.calls >= 900);
    });
    CHECK(w1.wait() == 0);  // SIGTERM is a graceful end.
  }

  SUBCASE("without retries only what was in flight on the killed node fails, at once") {
    WorkerProcess w1 = mesh.worker("w1"), w2 = mesh.worker("w2");
    mesh.run([&](Broker& broker) -> Task<void> {
      co_await workers_are(broker, 2);
      Traffic traffic(broker, 0);
      Instant killed_at{};
      const auto story = [&](Traffic& t) -> Task<void> {
        co_await t.more(300);
        w2.signal(SIGKILL);
        killed_at = broker.now();
        co_await workers_are(broker, 1);
        co_await t.more(300);
        t.stop = true;
      };
      std::vector<Task<void>> tasks;
      tasks.push_back(story(traffic));
      for (int i = 0; i < kLanes; ++i) tasks.push_back(traffic.lane());
      WhenAll all = when_all(std::move(tasks));
      const auto thrown = co_await all;
      for (const auto& failure : thrown) CHECK_FALSE(failure);
      CHECK(traffic.failures.size() <= kLanes);
      for (const Error& failure : traffic.failures) {
        CHECK(failure.error_class() == ErrorClass::kRequestRejected);
        CHECK(failure.data()["nodeID"].str_or({}) == "w2");
      }
      for (const Instant when : traffic.failed_at) {
        CHECK(when - killed_at < 2s);  // A busy machine is no failure; the figure below is the point.
      }
      if (!traffic.failed_at.empty()) {
        MESSAGE(transporter, ": ", traffic.failures.size(), " calls failed, the last one ",
                to_ms(traffic.failed_at.back() - killed_at), " ms after the kill");
      }
    });
  }
}

}  // namespace

TEST_SUITE("failover") {
  TEST_CASE("nodes die under traffic, on TCP") {
    check_failover("TCP");
  }

  TEST_CASE("nodes die under traffic, on NATS") {
    test::NatsServer server;
    check_failover(server.url());
  }
}

}  // namespace weft
