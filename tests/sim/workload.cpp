#include "tests/sim/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/sim/swarm.h"

namespace weft::swarm {

using namespace std::chrono_literals;

namespace {

constexpr Duration kLimited = 300ms;  // The timeout that the action "limited" has of its own.

std::string_view base_of(std::string_view action) {
  return action.substr(action.rfind('.') + 1);
}
std::string_view service_of(std::string_view action) {
  return action.substr(0, action.rfind('.'));
}

// How often it may run, and when it has ended, by the rules that docs/calling.md gives.
void fill_bounds(const Plan& plan, CallFact& fact, std::optional<Duration> timeout,
                 std::optional<int> retries, Instant now, Instant parent_deadline) {
  const BrokerOptions& options = plan.options;
  const int tries = retries ? *retries : (options.retry.enabled ? options.retry.retries : 0);
  fact.runs_max = 1 + tries + (base_of(fact.action) == "once" ? 1 : 0);
  Duration each = base_of(fact.action) == "limited" ? std::max(kLimited, options.request_timeout)
                                                    : options.request_timeout;
  if (timeout) each = *timeout;
  Duration pauses{};
  Duration pause = options.retry.delay;
  for (int i = 0; i < tries; ++i) {
    pauses += std::min(pause, options.retry.max_delay);
    pause *= 2;
  }
  fact.latest = now + each * fact.runs_max + pauses;
  fact.latest = std::min(fact.latest, parent_deadline);
}

CallOptions options_of(const CallPlan& plan, const Value& fallback) {
  CallOptions options;
  options.timeout = plan.timeout;
  options.retries = plan.retries;
  options.node = plan.node;
  if (plan.has_fallback) options.fallback = &fallback;
  options.tracking = plan.tracked;
  return options;
}

// A node that could have served the call all the while.
const SwarmNode* steady_server(const Swarm& swarm, const CallPlan& plan, Instant since) {
  for (const auto& member : swarm.members) {
    if (!plan.node.empty() && member->name() != plan.node) continue;
    if (member->is_up() && since - member->up_since() > 3s && member->offers(service_of(plan.action)))
      return member.get();
  }
  return nullptr;
}

// In a mesh that nothing disturbs, plain calls succeed, whoever joins and leaves in good order.
void check_reason(Swarm& swarm, const SwarmNode& member, const CallPlan& plan, Instant begun,
                  const Error& error) {
  const std::string_view base = base_of(plan.action);
  const bool is_plain = base == "get" || base == "keyed";
  if (!is_plain || (plan.timeout && *plan.timeout < 1s)) return;
  if (error.error_class() == ErrorClass::kQueueIsFull || !member.is_up() || begun - member.up_since() < 3s)
    return;
  const auto changed = swarm.changed_at.find(service_of(plan.action));
  if (changed != swarm.changed_at.end() && begun - changed->second < 3s) return;
  if (!swarm.trouble.is_calm_everywhere(swarm.world.now(), 20s)) return;
  const SwarmNode* server = steady_server(swarm, plan, begun);
  if (server == nullptr) return;
  swarm.verdict.broken("a call in a healthy mesh succeeds",
                       member.name() + " to " + plan.action + (plan.node.empty() ? "" : " on " + plan.node) +
                           ", which " + server->name() + " offers: " + error.to_string());
}

Value reply(Swarm& swarm, Context& c, LifeId life) {
  const Value& number = c.params.value()["n"];
  swarm.journal.call_runs(number.i64_or(0), life, c.action());
  return Value{{"n", number}, {"node", c.broker().node_id()}, {"life", static_cast<std::int64_t>(life)}};
}

Duration pause_of(Context& c) {
  return from_ms(c.params.value()["ms"].f64_or(0));
}

Task<Value> nest(Swarm& swarm, SwarmNode& member, LifeId life, Context& c) {
  Value own = reply(swarm, c, life);
  const Value params = c.params.value();
  const std::string next(params["next"].str_or("alpha.get"));
  CallFact fact{.caller = life, .action = next};
  std::optional<int> retries;
  if (params["retries"].is_number()) retries = static_cast<int>(params["retries"].i64());
  fill_bounds(swarm.plan, fact, std::nullopt, retries, c.broker().now(), c.deadline());
  const Instant begun = fact.begun_local = c.broker().now();
  const std::int64_t number = swarm.journal.begin_call(std::move(fact));
  Value sent = params;
  sent.set("n", number);
  sent.set("next", "alpha.get");  // Two levels deep at most.
  CallOptions options;
  options.retries = retries;
  auto call = c.try_call(next, Params(std::move(sent)), options);
  const Result<Value> result = co_await std::move(call);
  swarm.journal.call_ends(number, result.ok(), result.ok() ? "" : result.error().to_string(),
                          c.broker().now(), member.lateness(begun));
  own.set("below", result.ok());
  co_return own;
}

void add_actions(Swarm& swarm, SwarmNode& member, LifeId life, Service& s) {
  const auto options = [&swarm](const char* action) {
    ActionOptions made;
    if (const auto found = swarm.plan.strategies.find(action); found != swarm.plan.strategies.end())
      made.strategy = found->second;
    if (made.strategy == "Shard") made.strategy_options = Value{{"shardKey", "key"}};
    return made;
  };
  s.action(
      "get", [&swarm, life](Context& c) { return reply(swarm, c, life); }, options("get"));
  s.action(
      "keyed", [&swarm, life](Context& c) { return reply(swarm, c, life); }, options("keyed"));
  const auto later = [&swarm, life](Context& c) -> Task<Value> {
    Value own = reply(swarm, c, life);
    co_await c.broker().sleep(pause_of(c));
    co_return own;
  };
  s.action("later", later, options("later"));
  ActionOptions once = options("once");
  once.idempotent = true;
  s.action("once", later, once);
  s.action("limited", later, {.timeout = kLimited});
  s.action(
      "nest", [&swarm, &member, life](Context& c) { return nest(swarm, member, life, c); }, options("nest"));
  s.action("block", [&swarm, life](Context& c) { return reply(swarm, c, life); }, {.blocking = true});
  s.action("flaky", [&swarm, life](Context& c) {
    Value own = reply(swarm, c, life);
    const CallFact* fact = swarm.journal.call(own["n"].i64_or(0));
    if (fact != nullptr && fact->runs <= c.params.value()["fails"].i64_or(0))
      Error(ErrorClass::kRetryable, "flaky").raise();
    return own;
  });
  s.action("bad", [&swarm, life](Context& c) -> Value {
    (void)reply(swarm, c, life);
    throw ClientError("bad");
  });
}

void add_events(Swarm& swarm, LifeId life, Service& s) {
  for (const char* pattern : {"tick.one", "tick.*", "news.**"}) {
    SubscriptionOptions options;
    if (const auto group = swarm.plan.event_groups.find(pattern); group != swarm.plan.event_groups.end())
      options.group = group->second;
    const std::string group = options.group.empty() ? s.name() : options.group;
    const auto note = [&swarm, life, group, pattern](Context& c) {
      swarm.journal.event_runs(c.params.value()["e"].i64_or(0), life, c.service()->full_name(), group,
                               pattern);
    };
    if (std::string_view(pattern) == "news.**") {
      s.event(
          pattern,
          [note](Context& c) -> Task<void> {
            co_await c.broker().sleep(5ms);
            note(c);
          },
          options);
    } else {
      s.event(pattern, note, options);
    }
  }
}

template <typename T>
const T& one_of(Random& dice, const std::vector<T>& list) {
  return list[dice.below(list.size())];
}

std::string draw_action(Random& dice) {
  static const std::vector<std::string> kServices = {"alpha",    "beta",    "gamma", "delta",
                                                     "v2.alpha", "v2.beta", "omega"};
  static const std::vector<std::string> kActions = {"get",   "get",   "get",  "later", "later",
                                                    "nest",  "nest",  "once", "once",  "keyed",
                                                    "keyed", "flaky", "bad",  "block", "limited"};
  return one_of(dice, kServices) + "." + one_of(dice, kActions);
}

CallPlan draw_call(Swarm& swarm, Random& dice) {
  static const std::vector<Duration> kTimeouts = {50ms, 300ms, 2s};
  const auto chance = [&dice](double share) { return dice.uniform() < share; };
  CallPlan plan;
  plan.action = draw_action(dice);
  plan.params = Value{{"ms", static_cast<std::int64_t>(dice.below(chance(0.1) ? 3000 : 120))},
                      {"key", static_cast<std::int64_t>(dice.below(8))},
                      {"fails", static_cast<std::int64_t>(dice.below(4))},
                      {"next", draw_action(dice)}};
  if (chance(0.3)) plan.params.set("retries", static_cast<std::int64_t>(dice.below(3)));
  if (chance(0.1)) plan.params.set("ballast", std::string(dice.below(20'000), 'x'));
  if (chance(0.2)) plan.timeout = one_of(dice, kTimeouts);
  if (chance(0.25)) plan.retries = static_cast<int>(dice.below(4));
  if (chance(0.2)) plan.node = one_of(dice, swarm.plan.nodes).name;
  plan.has_fallback = chance(0.05);
  plan.tracked = !chance(0.05);
  return plan;
}

void do_something(Swarm& swarm, SwarmNode& member, Random& dice) {
  if (dice.uniform() < 0.2) {
    static const std::vector<std::string> kEvents = {"tick.one", "tick.two", "news.a.b", "nobody.cares"};
    send_event(swarm, member, one_of(dice, kEvents), dice.uniform() < 0.3);
    return;
  }
  member.broker().spawn([&swarm, &member, plan = draw_call(swarm, dice)]() mutable -> Task<void> {
    (void)co_await make_call(swarm, member, std::move(plan));
  });
}

// A life's traffic: the world keeps its pace, and the node's loop does it when it gets round to it.
struct Traffic {
  Swarm& swarm;
  SwarmNode& member;
  LifeId life;
  SeededRandom dice;
};

void next_step(const std::shared_ptr<Traffic>& traffic) {
  const Duration pause = traffic->swarm.plan.pause;
  const double share = -std::log(1 - traffic->dice.uniform());  // As if many clients came independently.
  const auto ns = static_cast<Duration::rep>(static_cast<double>(pause.count()) * std::min(share, 5.0));
  traffic->swarm.world.after(Duration(ns), [traffic] {
    SwarmNode& member = traffic->member;
    if (!traffic->swarm.traffic || !member.is_up() || member.life() != traffic->life) return;
    member.post([traffic] {
      if (traffic->member.is_up()) do_something(traffic->swarm, traffic->member, traffic->dice);
    });
    next_step(traffic);
  });
}

}  // namespace

std::shared_ptr<Service> make_service(Swarm& swarm, SwarmNode& member, const ServicePlan& plan) {
  auto service = std::make_shared<Service>(plan.name);
  if (plan.version != 0) service->version(plan.version);
  add_actions(swarm, member, member.life(), *service);
  add_events(swarm, member.life(), *service);
  return service;
}

void start_traffic(Swarm& swarm, SwarmNode& member) {
  next_step(std::make_shared<Traffic>(
      Traffic{swarm, member, member.life(), SeededRandom(swarm.world.draw_seed())}));
}

Task<CallEnd> make_call(Swarm& swarm, SwarmNode& member, CallPlan plan) {
  Broker& broker = member.broker();
  CallFact fact{.caller = member.life(),
                .action = plan.action,
                .node = plan.node,
                .answers_by_itself = !plan.has_fallback};
  fill_bounds(swarm.plan, fact, plan.timeout, plan.retries, broker.now(), kNever);
  fact.begun_local = broker.now();
  const Instant begun_local = fact.begun_local;
  const std::int64_t number = swarm.journal.begin_call(std::move(fact));
  const Instant begun = swarm.world.now();
  plan.params.set("n", number);
  const Value fallback("fallback");
  auto call = broker.try_call(plan.action, Params(Value(plan.params)), options_of(plan, fallback));
  Result<Value> result = co_await std::move(call);
  CallEnd end{.ok = result.ok()};
  if (result.ok()) {
    end.result = *std::move(result);
    const Value& got = end.result;
    const bool is_own = got.is_object() && got["n"] == Value(number) &&
                        (plan.node.empty() || got["node"] == Value(plan.node));
    if (!is_own && !(plan.has_fallback && got == fallback))
      swarm.verdict.broken("a call gets its own result",
                           "call " + std::to_string(number) + " of " + member.name() + " to " + plan.action);
  } else {
    end.error = result.error().to_string();
    check_reason(swarm, member, plan, begun, result.error());
  }
  swarm.journal.call_ends(number, end.ok, end.error, broker.now(), member.lateness(begun_local));
  co_return end;
}

void send_event(Swarm& swarm, SwarmNode& member, std::string_view name, bool broadcast,
                std::int64_t* number) {
  const std::int64_t own = swarm.journal.begin_event(
      {.emitter = member.life(), .name = std::string(name), .broadcast = broadcast});
  if (number != nullptr) *number = own;
  if (broadcast) {
    member.broker().broadcast(name, {{"e", own}});
  } else {
    member.broker().emit(name, {{"e", own}});
  }
}

}  // namespace weft::swarm
