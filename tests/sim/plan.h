#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "broker/options.h"
#include "lib/random/random.h"
#include "lib/sim/sim_fabric.h"
#include "lib/time/clock.h"

namespace weft::swarm {

enum class Carrier : std::uint8_t { kMemory, kBus, kTcp };

// A service that a node offers: the same actions and subscriptions everywhere, under different names.
struct ServicePlan {
  std::string name;
  int version = 0;  // 0: none.
  bool operator==(const ServicePlan&) const = default;
  [[nodiscard]] std::string full_name() const {
    return version == 0 ? name : "v" + std::to_string(version) + "." + name;
  }
};

struct NodePlan {
  std::string name;
  std::vector<ServicePlan> services;
  double clock_rate = 1.0;
  Duration wall_skew{};
  Duration joins_at{};
};

enum class FaultKind : std::uint8_t {
  // Wires.
  kSlowWire,
  kLoss,
  kDatagrams,  // Doubled and overtaken.
  kThinWire,   // Little bandwidth, segments in pieces.
  kOneWayCut,
  kPartition,
  kIsolation,
  kResets,
  kTornFrames,  // A reset inside a frame.
  kFullQueues,
  // Processes and machines.
  kSlowNode,
  kFreeze,
  kCrash,
  kPowerLoss,
  kWallJump,
  kBusRestart,
  kBusFreeze,
  kHasty,  // Stops with work under way.
  // No faults: what happens in a healthy mesh.
  kLeave,
  kAddService,
  kRemoveService,
};
inline constexpr FaultKind kLastFault = FaultKind::kHasty;
inline constexpr FaultKind kLastKind = FaultKind::kRemoveService;
[[nodiscard]] std::string_view name_of(FaultKind kind);

struct Fault {
  FaultKind kind{};
  Duration at{};      // Since the world began.
  Duration length{};  // Until it is over: healed, restarted, thawed.
  std::vector<std::size_t> nodes;
  double strength = 0;  // 0…1.
};

// All that one seed decides before the run: who is there, how they are set up, and what will befall them.
struct Plan {
  std::uint64_t seed = 0;
  Carrier carrier = Carrier::kBus;
  bool balanced = false;     // The bus spreads calls and emits.
  bool static_list = false;  // TCP: found by a list of addresses in place of datagrams.
  BrokerOptions options;
  std::map<std::string, std::string> strategies;    // By action.
  std::map<std::string, std::string> event_groups;  // By pattern, where it is not the service's name.
  SimLink link;
  std::vector<NodePlan> nodes;
  Duration pause{};       // Between two things that a node does.
  Duration busy_until{};  // Faults end and traffic stops.
  std::vector<Fault> faults;
};

// What the command line may decide in place of the seed.
struct PlanLimits {
  std::size_t nodes = 0;      // 0: as drawn.
  double ops_per_second = 0;  // Of all nodes together.
  bool faults = true;
  Duration busy = std::chrono::seconds(40);
};

[[nodiscard]] Plan draw_plan(std::uint64_t seed, const PlanLimits& limits = {});
[[nodiscard]] std::string describe(const Plan& plan);

}  // namespace weft::swarm
