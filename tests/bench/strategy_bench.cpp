// What choosing an endpoint costs, in nanoseconds and allocations: strategy_bench [rounds]. Run it alone on a
// quiet machine, from a release build; the best of many rounds is shown. No test: numbers of a shared machine
// prove nothing.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "broker/strategy/strategy.h"
#include "tests/support/allocations.h"

namespace {

using namespace weft;

// Endpoints that have answered, with calls under way.
struct Endpoints {
  explicit Endpoints(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Node& node = nodes.emplace_back();
      node.id = "node-" + std::to_string(i);
      node.metadata = {{"weight", static_cast<std::int64_t>(1 + i % 4)}};
      node.cpu = static_cast<int>(20 + i % 70);
      node.latency_ms = 20.0 + static_cast<double>(i % 70);
      Endpoint& endpoint = list.emplace_back();
      endpoint.node = &node;
      endpoint.group = &group;
      endpoint.latency_ms = *node.latency_ms;
      pointers.push_back(&endpoint);
      for (std::size_t n = 0; n < 8 + i % 4; ++n) flights.emplace_back().begin(endpoint, {});
    }
  }
  EndpointGroup group;
  std::deque<Node> nodes;
  std::deque<Endpoint> list;
  std::vector<const Endpoint*> pointers;
  std::deque<Flight> flights;
};

struct Row {
  const char* label;
  const char* strategy;
  Value options;
};

struct Cost {
  double ns = 1e9;
  double allocations = 0;
};

volatile std::uintptr_t g_sink;  // Keeps the work from being optimised away.

Cost cost_of(const Row& row, std::size_t count, int rounds) {
  constexpr int kPerRound = 1000;
  constexpr int kKeys = 1 << 13;  // More than Shard remembers.
  Endpoints endpoints(count);
  SeededRandom random(1);
  auto strategy = StrategyTable().make(row.strategy, row.options, random).value();
  std::vector<Payload> keys;
  for (int i = 0; i < kKeys; ++i) keys.emplace_back(Value{{"key", "user-" + std::to_string(i)}});
  const Payload meta;
  const Instant now = Instant{} + std::chrono::seconds(100);
  const auto pick = [&](std::size_t turn) {
    return strategy->select(endpoints.pointers, {keys[turn % kKeys], meta, now});
  };
  for (std::size_t turn = 0; turn < 4 * kKeys; ++turn)
    g_sink = reinterpret_cast<std::uintptr_t>(pick(turn * 7919));
  Cost cost;
  const std::size_t before = allocation_count();
  std::size_t turn = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kPerRound; ++i) g_sink = reinterpret_cast<std::uintptr_t>(pick(turn++));
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    cost.ns = std::min(cost.ns, spent.count() / kPerRound);
  }
  cost.allocations = static_cast<double>(allocation_count() - before) / static_cast<double>(turn);
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  const Row rows[] = {
      {"RoundRobin", "RoundRobin", {}},
      {"Random", "Random", {}},
      {"CpuUsage", "CpuUsage", {}},
      {"Latency", "Latency", {}},
      {"LeastRequests", "LeastRequests", {}},
      {"PeakEwma", "PeakEwma", {}},
      {"WeightedRoundRobin", "WeightedRoundRobin", {}},
      {"WeightedRandom", "WeightedRandom", {}},
      {"Shard", "Shard", {{"shardKey", "key"}}},
      {"Rendezvous", "Rendezvous", {{"shardKey", "key"}}},
      {"Rendezvous, bounded", "Rendezvous", {{"shardKey", "key"}, {"loadFactor", 1.25}}},
  };
  std::printf("%-22s %10s %10s %10s %12s\n", "ns a pick", "3", "100", "1000", "allocations");
  for (const Row& row : rows) {
    std::printf("%-22s", row.label);
    double allocations = 0;
    for (const std::size_t count : {3, 100, 1000}) {
      const Cost cost = cost_of(row, count, rounds);
      std::printf(" %10.1f", cost.ns);
      allocations = std::max(allocations, cost.allocations);
    }
    std::printf(" %12.3f\n", allocations);
  }
  return 0;
}
