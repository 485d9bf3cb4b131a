#include "tests/sim/plan.h"

#include <algorithm>

namespace weft::swarm {

using namespace std::chrono_literals;

namespace {

// Draws from a row of its own, so that a plan depends on nothing but the seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed ^ 0x706c616eULL) {}
  std::size_t below(std::size_t bound) { return random_.below(bound); }
  std::size_t between(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  double uniform() { return random_.uniform(); }
  bool chance(double share) { return random_.uniform() < share; }
  Duration between(Duration low, Duration high) {
    return low + Duration(static_cast<Duration::rep>(uniform() * static_cast<double>((high - low).count())));
  }
  template <typename T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(list.size()));
  }

 private:
  SeededRandom random_;
};

constexpr const char* kNames[] = {"alpha", "beta", "gamma", "delta"};

std::vector<ServicePlan> draw_services(Dice& dice) {
  std::vector<ServicePlan> services;
  for (const char* name : kNames) {
    for (const int version : {0, 2}) {
      if (dice.chance(version == 0 ? 0.5 : 0.15)) services.push_back({name, version});
    }
  }
  return services;
}

BrokerOptions draw_options(Dice& dice, Carrier carrier) {
  BrokerOptions options;
  options.name_space = dice.one_of<const char*>({"", "swarm"});
  options.serializer = dice.one_of<const char*>({"JSON", "MsgPack"});
  options.request_timeout = dice.one_of<Duration>({1s, 3s, 8s});
  options.max_call_level = dice.one_of<int>({0, 0, 4});
  options.retry.enabled = dice.chance(0.3);
  options.retry.retries = static_cast<int>(dice.between(1, 3));
  options.retry.delay = dice.one_of<Duration>({20ms, 100ms, 400ms});
  options.registry.strategy =
      dice.one_of<const char*>({"RoundRobin", "RoundRobin", "Random", "CpuUsage", "Latency", "Shard"});
  if (options.registry.strategy == "Shard") options.registry.strategy_options = Value{{"shardKey", "key"}};
  options.registry.prefer_local = dice.chance(0.5);
  options.registry.announce_debounce = dice.one_of<Duration>({0ms, 50ms, 300ms});
  options.heartbeat.interval = dice.one_of<Duration>({1s, 2s, 3s});
  options.heartbeat.timeout = 3 * options.heartbeat.interval + 500ms;
  options.heartbeat.clean_offline_nodes = dice.one_of<Duration>({10s, 600s});
  options.gossip.period = dice.one_of<Duration>({500ms, 1s, 2s});
  options.gossip.use_hostname = dice.chance(0.5);
  if (dice.chance(0.15)) options.transit.pending_requests_max = 4;
  options.tracking.shutdown_timeout = dice.one_of<Duration>({200ms, 1s, 5s});
  options.log_level = LogLevel::kWarn;
  (void)carrier;
  return options;
}

bool suits(FaultKind kind, Carrier carrier) {
  switch (carrier) {
    case Carrier::kMemory:
      return kind == FaultKind::kSlowNode || kind == FaultKind::kFreeze || kind == FaultKind::kCrash ||
             kind == FaultKind::kWallJump || kind >= FaultKind::kHasty;
    case Carrier::kBus:
      return kind != FaultKind::kDatagrams;
    case Carrier::kTcp:
      return kind != FaultKind::kBusRestart && kind != FaultKind::kBusFreeze;
  }
  return false;
}

Fault draw_fault(Dice& dice, const Plan& plan, bool healthy) {
  Fault fault;
  do {
    const auto first = healthy ? static_cast<std::size_t>(FaultKind::kLeave) : std::size_t{0};
    fault.kind = static_cast<FaultKind>(dice.between(first, static_cast<std::size_t>(kLastKind)));
  } while (!suits(fault.kind, plan.carrier));
  fault.at = dice.between(6s, plan.busy_until - 4s);
  // Short ones pass unnoticed, long ones outlast timeouts and heartbeats.
  fault.length = dice.chance(0.5) ? dice.between(20ms, 1500ms) : dice.between(1500ms, 14s);
  fault.length = std::min(fault.length, plan.busy_until - fault.at);
  fault.strength = dice.uniform();
  std::vector<std::size_t> all(plan.nodes.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[dice.below(i)]);
  const bool is_group = fault.kind == FaultKind::kPartition || fault.kind == FaultKind::kOneWayCut;
  const std::size_t count =
      is_group ? dice.between(1, std::max<std::size_t>(1, all.size() / 2))
               : (dice.chance(0.8) ? 1 : dice.between(1, std::max<std::size_t>(1, all.size() / 2)));
  fault.nodes.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  return fault;
}

}  // namespace

Plan draw_plan(std::uint64_t seed, const PlanLimits& limits) {
  Dice dice(seed);
  Plan plan;
  plan.seed = seed;
  plan.carrier =
      dice.one_of<Carrier>({Carrier::kBus, Carrier::kBus, Carrier::kTcp, Carrier::kTcp, Carrier::kMemory});
  plan.balanced = plan.carrier != Carrier::kTcp && dice.chance(0.15);
  plan.static_list = plan.carrier == Carrier::kTcp && dice.chance(0.3);
  plan.options = draw_options(dice, plan.carrier);
  plan.options.disable_balancer = plan.balanced;
  for (const char* action : {"get", "later", "nest", "once"}) {
    if (dice.chance(0.3))
      plan.strategies[action] = dice.one_of<const char*>({"RoundRobin", "Random", "CpuUsage", "Latency"});
  }
  plan.strategies["keyed"] = "Shard";
  if (dice.chance(0.5)) plan.event_groups["tick.one"] = "shared";
  if (dice.chance(0.3)) plan.event_groups["tick.*"] = "shared";
  plan.link.latency_min = dice.one_of<Duration>({100us, 500us, 2ms});
  plan.link.latency_max = plan.link.latency_min * dice.one_of<int>({1, 3, 8});
  plan.link.split = dice.one_of<double>({0, 0, 0.2});
  plan.busy_until = limits.busy;

  std::size_t count = dice.chance(0.1) ? dice.between(8, 14) : dice.between(2, 6);
  if (limits.nodes > 0) count = limits.nodes;
  const bool is_skewed = dice.chance(0.3);
  for (std::size_t i = 0; i < count; ++i) {
    NodePlan node{.name = "n" + std::to_string(i), .services = draw_services(dice)};
    if (is_skewed) node.clock_rate = 1.0 + (dice.uniform() - 0.5) * 0.04;
    if (is_skewed) node.wall_skew = dice.between(-3600s, 3600s);
    node.joins_at = dice.chance(0.8) ? dice.between(0ms, 300ms) : dice.between(300ms, plan.busy_until / 2);
    plan.nodes.push_back(std::move(node));
  }
  plan.pause = dice.one_of<Duration>({20ms, 60ms, 200ms}) * static_cast<int>(std::min<std::size_t>(count, 4));
  if (limits.ops_per_second > 0)
    plan.pause = from_ms(1000.0 * static_cast<double>(count) / limits.ops_per_second);

  if (!limits.faults) return plan;
  const bool healthy = dice.chance(0.2);
  const std::size_t faults = healthy ? dice.between(3, 10) : dice.between(1, 8);
  for (std::size_t i = 0; i < faults; ++i) plan.faults.push_back(draw_fault(dice, plan, healthy));
  std::stable_sort(plan.faults.begin(), plan.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return plan;
}

std::string_view name_of(FaultKind kind) {
  constexpr std::string_view kText[] = {
      "slow wire", "loss",          "doubled datagrams", "thin wire",   "one-way cut", "partition",
      "isolation", "resets",        "torn frames",       "full queues", "slow node",   "freeze",
      "crash",     "power loss",    "wall clock jump",   "bus restart", "bus freeze",  "hasty stop",
      "leave",     "service added", "service removed"};
  return kText[static_cast<std::size_t>(kind)];
}

std::string describe(const Plan& plan) {
  constexpr std::string_view kCarriers[] = {"memory", "bus", "tcp"};
  std::string text = std::to_string(plan.nodes.size()) + " nodes over ";
  text.append(kCarriers[static_cast<std::size_t>(plan.carrier)]);
  if (plan.balanced) text += " (balanced)";
  if (plan.static_list) text += " (listed)";
  text += ", " + plan.options.serializer + ", " + plan.options.registry.strategy;
  if (plan.options.registry.prefer_local) text += " local first";
  if (plan.options.retry.enabled) text += ", retries " + std::to_string(plan.options.retry.retries);
  for (const Fault& fault : plan.faults) {
    text += "\n  " + std::to_string(to_ms(fault.at) / 1000).substr(0, 6) +
            " s: " + std::string(name_of(fault.kind)) + " of";
    for (const std::size_t node : fault.nodes) text += " " + plan.nodes[node].name;
    text += " for " + std::to_string(to_ms(fault.length) / 1000).substr(0, 6) + " s";
  }
  return text;
}

}  // namespace weft::swarm
