#include "tests/sim/swarm.h"

#include "tests/sim/laws.h"

namespace weft::swarm {

using namespace std::chrono_literals;

Swarm::Swarm(const Plan& the_plan)
    : plan(the_plan), world(plan.seed), verdict(world), journal(world, verdict), trouble(plan.nodes.size()) {
  if (plan.carrier == Carrier::kBus) bus = std::make_unique<SimBus>(world);
  world.fabric().set_link(plan.link);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i)
    members.push_back(std::make_unique<SwarmNode>(*this, plan.nodes[i], i));
}

Swarm::~Swarm() {
  members.clear();
}

SwarmNode* Swarm::find(std::string_view name) const {
  for (const auto& member : members) {
    if (member->name() == name) return member.get();
  }
  return nullptr;
}

bool Swarm::is_calm(const SwarmNode& a, const SwarmNode& b) const {
  const Duration grace = 20s;
  const auto is_steady = [this, grace](const SwarmNode& member) {
    return trouble.is_calm(member.index(), world.now(), grace) && world.now() - member.up_since() >= grace;
  };
  return is_steady(a) && is_steady(b);
}

// Asked now and then: it may be a costly question.
bool Swarm::until(FunctionRef<bool()> condition, Duration limit) {
  const Instant end = world.now() + limit;
  while (!condition()) {
    if (world.now() >= end) return false;
    world.run_for(250ms);
  }
  return true;
}

void Swarm::run() {
  for (std::size_t i = 0; i < members.size(); ++i)
    world.after(plan.nodes[i].joins_at, [this, i] { members[i]->start(); });
  schedule_faults(*this);
  while (world.elapsed() < plan.busy_until) {
    world.run_for(1s);
    check_tables(*this);
  }
  traffic = false;
  world.fabric().heal_all();
  if (verdict.all().empty()) settle();
  end_all();
}

void Swarm::settle() {
  // What nobody has noticed yet runs into its timeouts first.
  world.run_for(15s);
  const Instant begin = world.now();
  const auto all_are_up = [this] {
    for (const auto& member : members) {
      if (member->state() == SwarmNode::State::kStarting || member->state() == SwarmNode::State::kStopping)
        return false;
      if (member->is_up() && journal.open_calls(member->life()) > 0) return false;
    }
    return true;
  };
  if (!until(all_are_up, 60s)) {
    for (const auto& member : members) {
      if (member->state() == SwarmNode::State::kStarting)
        verdict.broken("a node starts in time", member->name());
      if (member->state() == SwarmNode::State::kStopping)
        verdict.broken("a node stops in time", member->name());
      if (member->is_up()) journal.check_ended(member->life(), "long after its deadline");
    }
  }
  std::string why;
  if (!until([&] { return (why = why_not_converged(*this)).empty(); }, 60s))
    return verdict.broken("catalogues converge to what lives", why);
  converged_after = world.now() - begin;
  check_tables(*this);
  check_peace(*this);
}

void Swarm::end_all() {
  for (const auto& member : members) {
    if (world.random().below(3) == 0) {
      member->crash();
    } else {
      member->stop();
    }
  }
  const auto all_are_down = [this] {
    for (const auto& member : members) {
      if (member->state() != SwarmNode::State::kDown) return false;
    }
    return true;
  };
  if (!until(all_are_down, 30s)) {
    for (const auto& member : members) {
      if (member->state() != SwarmNode::State::kDown) verdict.broken("a node stops in time", member->name());
      member->crash();
    }
  }
  if (bus != nullptr && bus->is_running()) bus->stop();
  world.run_for(60s);
  if (world.fabric().stream_count() > 0)
    verdict.broken("nothing outlives its process",
                   std::to_string(world.fabric().stream_count()) + " streams are open");
  if (world.step())
    verdict.broken("nothing outlives its process", "the world without processes has something to do");
}

}  // namespace weft::swarm
