#include "tests/sim/faults.h"

#include <algorithm>
#include <utility>

#include "tests/sim/swarm.h"

namespace weft::swarm {

using namespace std::chrono_literals;

void Trouble::begin(std::size_t node) {
  ++nodes_[node].active;
}
void Trouble::end(std::size_t node, Instant now) {
  --nodes_[node].active;
  nodes_[node].last = now;
}
void Trouble::begin_all() {
  ++all_.active;
}
void Trouble::end_all(Instant now) {
  --all_.active;
  all_.last = now;
}
bool Trouble::is_calm_everywhere(Instant now, Duration span) const {
  return all_.is_calm(now, span) &&
         std::all_of(nodes_.begin(), nodes_.end(), [&](const One& one) { return one.is_calm(now, span); });
}

namespace {

// What a fault did, to be undone: runs when it is over.
using Undo = SimWorld::Callback;

Duration scaled(Duration low, Duration high, double strength) {
  return low + Duration(static_cast<Duration::rep>(static_cast<double>((high - low).count()) * strength));
}

// Lays a changed link over the sending and the receiving side of the fault's nodes.
template <typename Change>
Undo change_links(Swarm& swarm, const Fault& fault, Change&& change) {
  for (const std::size_t node : fault.nodes) {
    SimLink link = swarm.plan.link;
    change(link);
    swarm.world.fabric().set_link(swarm.members[node]->host(), link);
  }
  return [&swarm, nodes = fault.nodes] {
    for (const std::size_t node : nodes)
      swarm.world.fabric().set_link(swarm.members[node]->host(), std::nullopt);
  };
}

Undo cut(Swarm& swarm, const Fault& fault) {
  SimFabric& fabric = swarm.world.fabric();
  std::vector<SimHost*> group;
  std::vector<SimHost*> others;
  for (const auto& member : swarm.members) {
    const bool is_in =
        std::find(fault.nodes.begin(), fault.nodes.end(), member->index()) != fault.nodes.end();
    (is_in ? group : others).push_back(&member->host());
  }
  if (swarm.bus != nullptr) (fault.strength < 0.5 ? others : group).push_back(&swarm.bus->host());
  std::vector<SimFabric::CutId> cuts;
  if (fault.kind == FaultKind::kPartition) {
    cuts.push_back(fabric.partition(group, others));
  } else if (fault.kind == FaultKind::kOneWayCut) {
    cuts.push_back(fault.strength < 0.5 ? fabric.cut_one_way(group, others)
                                        : fabric.cut_one_way(others, group));
  } else {
    for (const std::size_t node : fault.nodes) cuts.push_back(fabric.isolate(swarm.members[node]->host()));
  }
  return [&fabric, cuts] {
    for (const SimFabric::CutId one : cuts) fabric.heal(one);
  };
}

// Resets every wire of the fault's nodes.
void hurt_streams(Swarm& swarm, const Fault& fault, void (SimFabric::*hurt)(const SimHost&, const SimHost&)) {
  SimFabric& fabric = swarm.world.fabric();
  for (const std::size_t node : fault.nodes) {
    for (std::size_t i = 0; i < fabric.host_count(); ++i) {
      if (&fabric.host(i) != &swarm.members[node]->host())
        (fabric.*hurt)(swarm.members[node]->host(), fabric.host(i));
    }
  }
}

template <typename Do>
void for_nodes(Swarm& swarm, const std::vector<std::size_t>& nodes, Do&& what) {
  for (const std::size_t node : nodes) what(*swarm.members[node]);
}

Undo on_wires(Swarm& swarm, const Fault& fault) {
  const double strength = fault.strength;
  switch (fault.kind) {
    case FaultKind::kSlowWire:
      return change_links(swarm, fault, [strength](SimLink& link) {
        link.latency_max += scaled(5ms, 200ms, strength);
        link.tail = 0.1;
        link.tail_max = scaled(50ms, 1500ms, strength);
      });
    case FaultKind::kLoss:
      return change_links(swarm, fault, [strength](SimLink& link) { link.loss = 0.02 + 0.6 * strength; });
    case FaultKind::kDatagrams:
      return change_links(swarm, fault, [strength](SimLink& link) {
        link.duplicate = 0.5;
        link.reorder = strength;
        link.reorder_max = 200ms;
      });
    case FaultKind::kThinWire:
      return change_links(swarm, fault, [strength](SimLink& link) {
        link.bytes_per_second = static_cast<std::uint64_t>(5e3 + 1e5 * strength);
        link.split = 0.5;
      });
    case FaultKind::kResets:
      hurt_streams(swarm, fault, &SimFabric::reset_streams);
      return [] {};
    case FaultKind::kTornFrames:
      hurt_streams(swarm, fault, &SimFabric::break_streams);
      return [] {};
    case FaultKind::kFullQueues:
      for_nodes(swarm, fault.nodes, [](SwarmNode& member) { member.host().refuse_writes(true); });
      return [&swarm, nodes = fault.nodes] {
        for_nodes(swarm, nodes, [](SwarmNode& member) { member.host().refuse_writes(false); });
      };
    default:
      return cut(swarm, fault);
  }
}

Undo restart_later(Swarm& swarm, const std::vector<std::size_t>& nodes) {
  return [&swarm, nodes] { for_nodes(swarm, nodes, [](SwarmNode& member) { member.start(); }); };
}

Undo on_processes(Swarm& swarm, const Fault& fault) {
  const double strength = fault.strength;
  switch (fault.kind) {
    case FaultKind::kSlowNode:
      for_nodes(swarm, fault.nodes,
                [strength](SwarmNode& member) { member.set_turn_cost(scaled(200us, 8ms, strength)); });
      return [&swarm, nodes = fault.nodes] {
        for_nodes(swarm, nodes, [](SwarmNode& member) { member.set_turn_cost({}); });
      };
    case FaultKind::kFreeze:
      for_nodes(swarm, fault.nodes, [](SwarmNode& member) { member.freeze(); });
      return [&swarm, nodes = fault.nodes] {
        for_nodes(swarm, nodes, [](SwarmNode& member) { member.thaw(); });
      };
    case FaultKind::kCrash:
      for_nodes(swarm, fault.nodes, [](SwarmNode& member) { member.crash(); });
      return restart_later(swarm, fault.nodes);
    case FaultKind::kPowerLoss:
      for_nodes(swarm, fault.nodes, [&swarm](SwarmNode& member) {
        swarm.world.fabric().power_off(member.host());
        member.crash();
      });
      return [&swarm, nodes = fault.nodes] {
        for_nodes(swarm, nodes, [&swarm](SwarmNode& member) {
          swarm.world.fabric().power_on(member.host());
          member.start();
        });
      };
    case FaultKind::kWallJump:
      for_nodes(swarm, fault.nodes, [strength](SwarmNode& member) {
        member.host().jump_wall_clock(scaled(-3600s, 3600s, strength));
      });
      return [] {};
    case FaultKind::kBusRestart:
      if (swarm.bus->is_running()) swarm.bus->stop();
      return [&swarm] {
        if (!swarm.bus->is_running()) swarm.bus->start();
      };
    case FaultKind::kBusFreeze:
      if (swarm.bus->is_running()) swarm.bus->freeze();
      return [&swarm] {
        if (swarm.bus->is_running()) swarm.bus->thaw();
      };
    case FaultKind::kHasty:
    case FaultKind::kLeave:
      for_nodes(swarm, fault.nodes, [](SwarmNode& member) { member.stop(); });
      return restart_later(swarm, fault.nodes);
    default: {
      const ServicePlan service{strength < 0.5 ? "omega" : "alpha", strength < 0.25 ? 2 : 0};
      const bool adds = fault.kind == FaultKind::kAddService;
      const auto change = [service](SwarmNode& member, bool add) {
        add ? member.add_service(service) : member.remove_service(service.full_name());
      };
      for_nodes(swarm, fault.nodes, [&](SwarmNode& member) { change(member, adds); });
      return [&swarm, nodes = fault.nodes, change, adds] {
        for_nodes(swarm, nodes, [&](SwarmNode& member) { change(member, !adds); });
      };
    }
  }
}

bool touches_all(const Swarm& swarm, const Fault& fault) {
  if (fault.kind == FaultKind::kBusRestart || fault.kind == FaultKind::kBusFreeze) return true;
  if (fault.kind == FaultKind::kPartition || fault.kind == FaultKind::kOneWayCut) return true;
  // From peer to peer a node whose wires are bad tells the others that its peers are gone.
  return swarm.plan.carrier == Carrier::kTcp && fault.kind <= FaultKind::kFullQueues;
}

void begin_fault(Swarm& swarm, const Fault& fault) {
  swarm.world.note("fault", name_of(fault.kind));
  const bool is_healthy = fault.kind > kLastFault || fault.kind == FaultKind::kWallJump;
  const bool all = !is_healthy && touches_all(swarm, fault);
  if (all) swarm.trouble.begin_all();
  if (!is_healthy) {
    for (const std::size_t node : fault.nodes) swarm.trouble.begin(node);
  }
  // Of two faults of one kind at once, the second changes nothing that the first does not.
  Undo undo = fault.kind <= FaultKind::kFullQueues ? on_wires(swarm, fault) : on_processes(swarm, fault);
  swarm.world.after(fault.length, [&swarm, &fault, all, is_healthy, undo = std::move(undo)]() mutable {
    swarm.world.note("fault is over", name_of(fault.kind));
    undo();
    if (all) swarm.trouble.end_all(swarm.world.now());
    if (is_healthy) return;
    for (const std::size_t node : fault.nodes) swarm.trouble.end(node, swarm.world.now());
  });
}

}  // namespace

void schedule_faults(Swarm& swarm) {
  for (const Fault& fault : swarm.plan.faults)
    swarm.world.after(fault.at, [&swarm, &fault] { begin_fault(swarm, fault); });
}

}  // namespace weft::swarm
