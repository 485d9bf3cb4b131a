// One side of a benchmark between two processes: `mesh_bench server …` and `mesh_bench client …`; see
// tools/bench. Prints one JSON line for each run.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "lib/loop/when_all.h"
#include "lib/protocol/serializer.h"
#include "weft/weft.h"

namespace mesh_bench {

struct AddParams {
  std::int64_t a = 0, b = 0;
};
WEFT_FIELDS(AddParams, a, b)

struct Blob {
  std::string text;
};
WEFT_FIELDS(Blob, text)

inline constexpr weft::Action<AddParams, std::int64_t> kAdd{"bench.add"};

}  // namespace mesh_bench

namespace {

using namespace weft;
using namespace std::chrono_literals;
using mesh_bench::AddParams;
using mesh_bench::Blob;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::shared_ptr<Service> bench_service() {
  auto service = std::make_shared<Service>("bench");
  service->action("add", [](Context&, const AddParams& p) { return p.a + p.b; });
  service->action("echo", [](Context&, const Blob& blob) { return blob; });
  service->action("cpu", [](Context&) { return cpu_seconds(); });
  return service;
}

struct Load {
  std::string payload = "add";  // add, 1k, 64k
  int in_flight = 1;
  double seconds = 2;
};

struct Tally {
  std::vector<std::uint32_t> latencies_ns_div_100;
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
};

Task<void> one_lane(Broker& broker, const Load& load, const Blob& blob, Clock::time_point warm,
                    Clock::time_point end, Tally& tally) {
  while (true) {
    const auto start = Clock::now();
    if (start >= end) co_return;
    bool ok = true;
    if (load.payload == "add") {
      const AddParams params{20, 22};
      auto sum = co_await broker.try_call<std::int64_t>("bench.add", params);
      ok = sum.ok() && *sum == 42;
    } else {
      auto echoed = co_await broker.try_call<Blob>("bench.echo", blob);
      ok = echoed.ok() && (*echoed).text.size() == blob.text.size();
    }
    const auto now = Clock::now();
    if (now < warm) continue;
    ++tally.calls;
    if (!ok) ++tally.failures;
    tally.latencies_ns_div_100.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - start).count() / 100));
  }
}

Task<int> run_client(Broker& broker, std::vector<Load> loads, std::string label) {
  co_await broker.wait_for_services("bench", 20s);
  for (const Load& load : loads) {
    Blob blob;
    blob.text.assign(load.payload == "64k" ? 65536 : 1024, 'x');
    Tally tally;
    tally.latencies_ns_div_100.reserve(4'000'000);
    const auto begin = Clock::now();
    const auto warm = begin + 300ms;
    const auto end =
        warm + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(load.seconds));
    std::vector<Task<void>> lanes;
    for (int i = 0; i < load.in_flight; ++i) lanes.push_back(one_lane(broker, load, blob, warm, end, tally));
    const double own_before = cpu_seconds();
    const double other_before = co_await broker.call<double>("bench.cpu");
    // Named: a list made in an expression that awaits is refused by g++ 12.
    WhenAll all = when_all(std::move(lanes));
    const auto failed = co_await all;
    for (const auto& failure : failed) {
      if (failure) std::rethrow_exception(failure);
    }
    const double other_after = co_await broker.call<double>("bench.cpu");
    const double cpu = cpu_seconds() - own_before + other_after - other_before;
    auto& sorted = tally.latencies_ns_div_100;
    std::sort(sorted.begin(), sorted.end());
    const auto quantile = [&sorted](double q) {
      if (sorted.empty()) return 0.0;
      return sorted[std::min(sorted.size() - 1,
                             static_cast<std::size_t>(q * static_cast<double>(sorted.size())))] /
             10.0;
    };
    const double total = static_cast<double>(tally.calls) * (load.seconds + 0.3) /
                         load.seconds;  // The warm-up costs CPU, too.
    Value row{{"name", label},
              {"payload", load.payload},
              {"inFlight", load.in_flight},
              {"callsPerSecond", std::round(static_cast<double>(tally.calls) / load.seconds)},
              {"p50us", quantile(0.5)},
              {"p90us", quantile(0.9)},
              {"p99us", quantile(0.99)},
              {"p999us", quantile(0.999)},
              {"cpuUsPerCall", std::round(cpu / total * 1e8) / 100},
              {"failures", tally.failures}};
    std::printf("%s\n", to_json(row).c_str());
    std::fflush(stdout);
  }
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Benchmark of calls between two processes");
  std::string transporter, serializer = "JSON", urls, label = "weft", name_space = "bench";
  std::uint16_t port = 0;
  double seconds = 2;
  std::vector<int> in_flight = {1, 16, 256, 1000};
  std::vector<std::string> payloads = {"add"};
  program.require_subcommand(1);
  for (const char* side : {"server", "client"}) {
    auto* sub = program.add_subcommand(side);
    sub->add_option("--transporter", transporter)->required();
    sub->add_option("--serializer", serializer);
    sub->add_option("--namespace", name_space);
    sub->add_option("--port", port);
    sub->add_option("--urls", urls);
    sub->add_option("--seconds", seconds);
    sub->add_option("--in-flight", in_flight)->delimiter(',');
    sub->add_option("--payload", payloads)->delimiter(',');
    sub->add_option("--label", label);
  }
  CLI11_PARSE(program, argc, argv);
  const bool is_server = program.got_subcommand("server");
  AppOptions options;
  options.node_id = is_server ? "bench-server" : "bench-client";
  options.name_space = name_space;
  options.transporter = transporter;
  options.log_level = LogLevel::kWarn;
  options.broker.serializer = serializer;
  options.tcp.udp_discovery = false;
  options.tcp.host = "127.0.0.1";
  options.tcp.port = port;
  options.tcp.use_hostname = false;
  if (!urls.empty()) options.tcp.urls = Value(urls);
  weft::App app(std::move(options));
  if (is_server) {
    app.add_service(bench_service());
    return app.run();
  }
  std::vector<Load> loads;
  for (const std::string& payload : payloads) {
    for (const int count : in_flight) loads.push_back({payload, count, seconds});
  }
  return app.run([&](Broker& broker) { return run_client(broker, loads, label); });
}
