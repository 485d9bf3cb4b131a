#include "tests/sim/laws.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/sim/swarm.h"
#include "tests/sim/workload.h"

namespace weft::swarm {

using namespace std::chrono_literals;

namespace {

// What a row of the node list says that node offers, in one order.
std::string offer_of(const Value& row) {
  std::set<std::string> lines;
  for (const Value& service : row["services"].items()) {
    const std::string name(service["fullName"].str_or({}));
    for (const char* kind : {"actions", "events"}) {
      for (const weft::Member& entry : service[kind].members()) lines.insert(name + " " + entry.key);
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::map<std::string, Value> rows_of(const SwarmNode& member) {
  std::map<std::string, Value> rows;
  const Value list = member.broker().node_list(true);
  for (const Value& row : list.items()) rows.emplace(row["id"].str(), row);
  return rows;
}

std::vector<SwarmNode*> living(Swarm& swarm) {
  std::vector<SwarmNode*> members;
  for (const auto& member : swarm.members) {
    if (member->is_up()) members.push_back(member.get());
  }
  return members;
}

std::set<std::string> offered(Swarm& swarm) {
  std::set<std::string> names;
  for (SwarmNode* member : living(swarm)) {
    for (const ServicePlan& service : member->services()) names.insert(service.full_name());
  }
  return names;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

struct Places {
  std::map<std::string, std::set<std::string>> by_key;
};

Task<void> visit_all(Swarm& swarm, SwarmNode& caller, const std::set<std::string>& services, Places& places) {
  const auto visit = [&swarm, &caller](CallPlan plan) -> Task<CallEnd> {
    const std::string what =
        caller.name() + " to " + plan.action + (plan.node.empty() ? "" : " on " + plan.node);
    CallEnd end = co_await make_call(swarm, caller, std::move(plan));
    if (!end.ok) swarm.verdict.broken("in peace every call succeeds", what + ": " + end.error);
    co_return end;
  };
  for (const std::string& service : services) {
    CallPlan plain;
    plain.action = service + ".get";
    (void)co_await visit(plain);
    for (SwarmNode* server : living(swarm)) {
      if (!server->offers(service)) continue;
      CallPlan direct = plain;
      direct.node = server->name();
      (void)co_await visit(direct);
    }
    for (std::int64_t key = 0; key < 3; ++key) {
      CallPlan keyed;
      keyed.action = service + ".keyed";
      keyed.params.set("key", key);
      const CallEnd end = co_await visit(keyed);
      const bool is_local = swarm.plan.options.registry.prefer_local && caller.offers(service);
      if (end.ok && !is_local)
        places.by_key[service + " " + std::to_string(key)].insert(std::string(end.result["node"].str_or({})));
    }
  }
}

void check_emit(Swarm& swarm, std::int64_t number, const std::map<std::string, int>& expected) {
  const EventFact& fact = swarm.journal.event(number);
  for (const auto& [key, count] : expected) {
    const auto found = fact.runs.find(key);
    if (found == fact.runs.end() || found->second != count)
      swarm.verdict.broken("in peace every event arrives",
                           std::string(fact.broadcast ? "broadcast " : "emit ") + std::to_string(number) +
                               " '" + fact.name + "' of " + swarm.journal.name_of(fact.emitter) +
                               " did not run for '" + key + "'");
  }
}

}  // namespace

std::string why_not_converged(Swarm& swarm) {
  const auto alive = living(swarm);
  std::map<std::string, Value> own;
  for (SwarmNode* member : alive) {
    auto rows = rows_of(*member);
    own[member->name()] = std::move(rows[member->name()]);
  }
  for (SwarmNode* member : alive) {
    const auto rows = rows_of(*member);
    for (const auto& [id, truth] : own) {
      const auto seen = rows.find(id);
      if (seen == rows.end() || !seen->second["available"].boolean_or(false))
        return member->name() + " misses " + id;
      const Value& row = seen->second;
      if (row["instanceID"] != truth["instanceID"]) return member->name() + " knows another process as " + id;
      if (offer_of(row) != offer_of(truth)) return member->name() + " is wrong about what " + id + " offers";
      if (row["seq"] != truth["seq"]) return member->name() + " has another version of " + id;
    }
    for (const auto& [id, row] : rows) {
      if (row["available"].boolean_or(false) && !own.contains(id))
        return member->name() + " believes in " + id + ", which is dead";
    }
  }
  return {};
}

void check_peace(Swarm& swarm) {
  const std::set<std::string> services = offered(swarm);
  Places places;
  std::vector<Task<void>> visits;
  std::size_t open = 0;
  for (SwarmNode* member : living(swarm)) visits.push_back(visit_all(swarm, *member, services, places));
  open = visits.size();
  for (Task<void>& visit : visits)
    visit.start([](void* count) { --*static_cast<std::size_t*>(count); }, &open);
  swarm.world.run_until([&open] { return open == 0; }, 120s);
  if (open > 0)
    return swarm.verdict.broken("in peace every call ends", std::to_string(open) + " nodes still wait");
  for (Task<void>& visit : visits) visit.take();
  if (!swarm.plan.balanced) {
    for (const auto& [key, nodes] : places.by_key) {
      if (nodes.size() > 1) swarm.verdict.broken("a key has one place", key + " went to " + joined(nodes));
    }
  }

  const auto group_of = [&swarm](const std::string& pattern, const ServicePlan& service) {
    const auto group = swarm.plan.event_groups.find(pattern);
    return (group != swarm.plan.event_groups.end() ? group->second : service.name) + " " + pattern;
  };
  std::map<std::string, int> by_group;
  std::map<std::string, int> by_subscription;
  for (SwarmNode* member : living(swarm)) {
    for (const ServicePlan& service : member->services()) {
      for (const char* pattern : {"tick.one", "tick.*"}) {
        by_group[group_of(pattern, service)] = 1;
        by_subscription[group_of(pattern, service) + " " + std::to_string(member->life()) + " " +
                        service.full_name()] = 1;
      }
    }
  }
  std::vector<std::pair<std::int64_t, bool>> sent;
  for (SwarmNode* member : living(swarm)) {
    for (const bool broadcast : {false, true}) {
      std::int64_t number = 0;
      send_event(swarm, *member, "tick.one", broadcast, &number);
      sent.emplace_back(number, broadcast);
    }
  }
  swarm.world.run_for(1s);
  for (const auto& [number, broadcast] : sent)
    check_emit(swarm, number, broadcast ? by_subscription : by_group);
}

void check_tables(Swarm& swarm) {
  for (const auto& member : swarm.members) {
    if (!member->is_up() || member->is_frozen()) continue;
    const std::size_t pending = member->broker().pending_requests();
    if (pending > swarm.plan.options.transit.pending_requests_max ||
        pending > swarm.journal.open_calls(member->life()))
      swarm.verdict.broken("tables are bounded",
                           member->name() + " has " + std::to_string(pending) + " pending requests for " +
                               std::to_string(swarm.journal.open_calls(member->life())) + " calls");
    swarm.journal.check_due(member->life(), member->local_now(),
                            [&member](Instant since) { return member->lateness(since); });
    const std::size_t known = member->broker().node_list().items().size();
    if (known > swarm.members.size())
      swarm.verdict.broken("tables are bounded",
                           member->name() + " knows " + std::to_string(known) + " nodes");
  }
  const std::size_t n = swarm.members.size() + 1;
  if (swarm.world.fabric().stream_count() > 6 * n * n)
    swarm.verdict.broken("tables are bounded",
                         std::to_string(swarm.world.fabric().stream_count()) + " streams are open");
}

}  // namespace weft::swarm
