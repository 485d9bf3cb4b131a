// Calls chaos.work at a steady rate, signals a worker on the way, and prints which calls failed, as JSON. Its
// twin for Moleculer is js/kill_client.js; failure_graph.py runs both.
//
//   kill_client TRANSPORTER PORT WORKERS VICTIM_PID SIGNAL SECONDS

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "weft/weft.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;

constexpr double kRate = 500;
constexpr Duration kBefore = 2s;  // Calls before the signal.

struct Run {
  std::uint64_t made = 0;
  std::uint64_t open = 0;
  Instant signalled_at{};
  std::vector<std::pair<double, double>> failures;  // Begun and ended, in ms since the signal.
};

Task<void> one(Broker& broker, Run& run) {
  const Instant begun = broker.now();
  CallOptions options;
  options.timeout = 1s;
  options.retries = 0;
  auto answer = co_await broker.try_call<std::string>("chaos.work", {{"ms", 5}}, options);
  --run.open;
  if (!answer) {
    run.failures.emplace_back(to_ms(begun - run.signalled_at), to_ms(broker.now() - run.signalled_at));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const std::size_t workers = std::strtoul(argv[3], nullptr, 10);
  const int victim = std::atoi(argv[4]), signal_number = std::atoi(argv[5]);
  const Duration span = std::chrono::seconds(std::atoi(argv[6]));
  AppOptions options;
  options.node_id = "client";
  options.transporter = argv[1];
  options.log_level = LogLevel::kFatal;
  options.tcp.host = "127.0.0.1";
  options.tcp.port = static_cast<std::uint16_t>(std::atoi(argv[2]));
  options.tcp.use_hostname = false;
  options.tcp.udp_discovery = false;
  App app(std::move(options));
  Run run;
  return app.run([&](Broker& broker) -> Task<int> {
    while (broker.node_list(false, true).size() < workers + 1) co_await broker.sleep(20ms);
    co_await broker.wait_for_services("chaos");
    const Instant began = broker.now();
    run.signalled_at = began + kBefore;
    bool signalled = false;
    while (broker.now() < run.signalled_at + span) {
      if (!signalled && broker.now() >= run.signalled_at) {
        run.signalled_at = broker.now();
        ::kill(victim, signal_number);
        signalled = true;
      }
      for (; static_cast<double>(run.made) < to_ms(broker.now() - began) / 1000 * kRate; ++run.made) {
        ++run.open;
        broker.spawn([&] { return one(broker, run); });
      }
      co_await broker.sleep(2ms);
    }
    while (run.open > 0) co_await broker.sleep(2ms);
    std::printf("{\"made\":%llu,\"failures\":[", static_cast<unsigned long long>(run.made));
    const char* comma = "";
    for (const auto& [begun, ended] : run.failures) {
      std::printf("%s[%.1f,%.1f]", comma, begun, ended);
      comma = ",";
    }
    std::printf("]}\n");
    co_return 0;
  });
}
