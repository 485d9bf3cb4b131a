#include "tests/sim/journal.h"

#include <algorithm>

namespace weft::swarm {

namespace {

// How far apart two things may be and still count as the same moment.
constexpr Duration kTick = std::chrono::milliseconds(1);

std::string ms(Duration duration) {
  return std::to_string(static_cast<std::int64_t>(to_ms(duration))) + " ms";
}

}  // namespace

LifeId Journal::begin_life(std::string node) {
  lives_.push_back({std::move(node)});
  return static_cast<LifeId>(lives_.size() - 1);
}

std::string Journal::text(std::int64_t number, const CallFact& fact) const {
  std::string text =
      "call " + std::to_string(number) + " of " + lives_[fact.caller].node + " to " + fact.action;
  if (!fact.node.empty()) text += " on " + fact.node;
  return text;
}

std::int64_t Journal::begin_call(CallFact fact) {
  fact.begun_at = world_.now();
  Life& life = lives_[fact.caller];
  calls_.push_back(std::move(fact));
  const auto number = static_cast<std::int64_t>(calls_.size());
  if (life.calls.size() > 2 * life.open + 64) {
    std::erase_if(life.calls, [this](std::int64_t one) { return call(one)->ends > 0; });
  }
  life.calls.push_back(number);
  ++life.open;
  return number;
}

CallFact* Journal::call(std::int64_t number) {
  const auto index = static_cast<std::size_t>(number) - 1;
  return number >= 1 && index < calls_.size() ? &calls_[index] : nullptr;
}

void Journal::call_runs(std::int64_t number, LifeId life, std::string_view action) {
  ++runs_;
  CallFact* fact = call(number);
  if (fact == nullptr) return verdict_.broken("params arrive whole", "a handler was given no call's number");
  if (lives_[life].over)
    verdict_.broken("after stop() nothing runs", text(number, *fact) + " ran on " + lives_[life].node);
  if (fact->action != action)
    verdict_.broken("the called action runs", text(number, *fact) + " ran " + std::string(action));
  if (!fact->node.empty() && fact->node != lives_[life].node)
    verdict_.broken("a direct call runs on its node", text(number, *fact) + " ran on " + lives_[life].node);
  if (++fact->runs > fact->runs_max)
    verdict_.broken("a call runs no more often than declared", text(number, *fact) + " ran " +
                                                                   std::to_string(fact->runs) + " times of " +
                                                                   std::to_string(fact->runs_max));
}

void Journal::call_ends(std::int64_t number, bool ok, std::string_view outcome, Instant now,
                        Duration lateness) {
  CallFact& fact = *call(number);
  fact.ok = ok;
  ok_calls_ += ok ? 1 : 0;
  if (++fact.ends > 1)
    verdict_.broken("a call ends once", text(number, fact) + " ended again");
  else
    --lives_[fact.caller].open;
  if (lives_[fact.caller].over)
    verdict_.broken("after stop() nothing runs", text(number, fact) + " ended then");
  if (ok && fact.answers_by_itself && fact.runs == 0)
    verdict_.broken("a result comes from a handler", text(number, fact) + " succeeded and never ran");
  if (fact.latest != kNever && now > fact.latest + lateness + kTick) {
    verdict_.broken("a call ends by its deadline", text(number, fact) + " ended " + ms(now - fact.latest) +
                                                       " late: " + std::string(outcome));
  }
}

void Journal::check_ended(LifeId life, std::string_view when) {
  for (const std::int64_t number : lives_[life].calls) {
    if (call(number)->ends == 0)
      verdict_.broken("each call ends", text(number, *call(number)) + " is open " + std::string(when));
  }
}

void Journal::check_due(LifeId life, Instant now, FunctionRef<Duration(Instant since)> lateness) {
  for (const std::int64_t number : lives_[life].calls) {
    const CallFact& fact = *call(number);
    if (fact.ends > 0 || fact.latest == kNever || now <= fact.latest + kTick) continue;
    if (now > fact.latest + lateness(fact.begun_local) + kTick)
      verdict_.broken("each call ends", text(number, fact) + " is open after its deadline");
  }
}

void Journal::node_lost(LifeId life, std::string_view node) {
  for (const std::int64_t number : lives_[life].calls) {
    CallFact& fact = *call(number);
    if (fact.ends == 0 && fact.node == node && fact.runs_max == 1) fact.lost_its_node = world_.now();
  }
}

void Journal::node_back(LifeId life, std::string_view node) {
  for (const std::int64_t number : lives_[life].calls) {
    CallFact& fact = *call(number);
    if (fact.node == node) fact.lost_its_node = kNever;
  }
}

void Journal::check_lost(LifeId life, std::string_view node, Duration limit) {
  for (const std::int64_t number : lives_[life].calls) {
    CallFact& fact = *call(number);
    if (fact.node != node || fact.ends > 0 || fact.lost_its_node > world_.now() - limit) continue;
    verdict_.broken("a call ends with the loss of its node", text(number, fact) + " is still open");
  }
}

std::int64_t Journal::begin_event(EventFact fact) {
  fact.sent_at = world_.now();
  events_.push_back(std::move(fact));
  return static_cast<std::int64_t>(events_.size());
}

void Journal::event_runs(std::int64_t number, LifeId life, std::string_view service, std::string_view group,
                         std::string_view pattern) {
  const auto index = static_cast<std::size_t>(number) - 1;
  if (number < 1 || index >= events_.size())
    return verdict_.broken("params arrive whole", "an event's handler was given no event's number");
  EventFact& fact = events_[index];
  const std::string what =
      "event " + std::to_string(number) + " '" + fact.name + "' of " + lives_[fact.emitter].node;
  if (lives_[life].over) verdict_.broken("after stop() nothing runs", what + " ran on " + lives_[life].node);
  std::string key = std::string(group) + " " + std::string(pattern);
  if (fact.broadcast) key += " " + std::to_string(life) + " " + std::string(service);
  if (++fact.runs[key] > 1) {
    verdict_.broken(fact.broadcast ? "a broadcast runs once per subscription" : "an emit runs once per group",
                    what + " ran again for '" + key + "' on " + lives_[life].node);
  }
}

}  // namespace weft::swarm
