#include "broker/registry/registry.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "broker/registry/pattern.h"
#include "lib/base/assert.h"

namespace weft {

namespace {

std::string event_key(std::string_view pattern, std::string_view group) {
  std::string key(group);
  key += '\n';
  key += pattern;
  return key;
}

// Names come from peers, and nothing may grow with them for ever: cached event names, and actions that nobody
// offers any more.
constexpr std::size_t kMatchCacheMax = 4096;
constexpr std::size_t kOrphanedActionsMax = 10'000;

// Calls `visit(name, definition)` for each entry of an `actions` or `events` map; peers may send an array as
// well.
template <typename Visit>
void for_each_entry(const Value& entries, Visit&& visit) {
  for (const Member& member : entries.members()) {
    const std::string_view name = member.value["name"].str_or(member.key);
    if (!name.empty()) visit(name, member.value);
  }
  for (const Value& item : entries.items()) {
    const std::string_view name = item["name"].str_or({});
    if (!name.empty()) visit(name, item);
  }
}

}  // namespace

std::string full_service_name(std::string_view name, const Value& version, const Value& settings) {
  if (settings["$noVersionPrefix"].boolean_or(false)) return std::string(name);
  if (version.is_number()) return "v" + std::to_string(version.i64_or(0)) + "." + std::string(name);
  if (version.is_string()) return std::string(version.str()) + "." + std::string(name);
  return std::string(name);
}

Registry::Registry(NodeCatalog& nodes, RegistryConfig config, const StrategyTable& strategies, Random& random,
                   Logger log)
    : nodes_(nodes),
      config_(std::move(config)),
      strategies_(strategies),
      random_(random),
      log_(std::move(log)) {}

Registry::~Registry() = default;

void Registry::complain(std::string what) {
  if (++complaints_ == 1) complaint_ = std::move(what);
}

void Registry::forget_matches() {
  matches_.clear();
  local_matches_.clear();
}

Result<> Registry::check_strategy(std::string_view name, const Value& options) const {
  if (auto made = strategies_.make(name, options, random_); !made) return made.error();
  return {};
}

std::unique_ptr<Strategy> Registry::make_strategy(const Value& definition, std::string_view what) {
  // Under a name of weft's what Moleculer does not have, see describe_service.
  for (const auto& [name, options] :
       {std::pair("weftStrategy", "weftStrategyOptions"), std::pair("strategy", "strategyOptions")}) {
    if (!definition[name].is_string()) continue;
    auto made = strategies_.make(definition[name].str(), definition[options], random_);
    if (made) return std::move(*made);
    complain("'" + std::string(what) + "': " + made.error().message() + " Using " + config_.strategy + ".");
    break;
  }
  auto made = strategies_.make(config_.strategy, config_.strategy_options, random_);
  WEFT_ASSERT(made.ok());  // Checked when the broker was made.
  return std::move(*made);
}

void Registry::set_strategy(ActionList& list, const Value& definition) {
  list.strategy = make_strategy(definition, list.name);
  list.group.strategy = list.strategy.get();
}

ActionList& Registry::action_list(std::string_view name, const Value& definition) {
  if (const auto found = actions_.find(name); found != actions_.end()) {
    ActionList& list = *found->second;
    if (list.endpoints.empty()) set_strategy(list, definition);
    return list;
  }
  auto list = std::make_unique<ActionList>();
  list->name = name;
  set_strategy(*list, definition);
  ActionList& added = *list;
  actions_.emplace(added.name, &added);
  actions_in_order_.push_back(std::move(list));
  return added;
}

EventList& Registry::event_list(std::string_view pattern, std::string_view group, const Value& definition) {
  const std::string key = event_key(pattern, group);
  if (const auto found = events_by_key_.find(key); found != events_by_key_.end()) return *found->second;
  auto list = std::make_unique<EventList>();
  list->pattern = pattern;
  list->group = group;
  list->strategy = make_strategy(definition, pattern);
  EventList& added = *list;
  events_by_key_.emplace(key, &added);
  events_.push_back(std::move(list));
  forget_matches();
  return added;
}

void Registry::refresh(ActionList& list) {
  // The first definition seen decides, as long as its endpoint is there.
  const Value& definition = list.endpoints.empty() ? Value() : *list.endpoints.front()->definition;
  refresh_guards(list, definition);
  list.available.clear();
  list.local = nullptr;
  for (const auto& endpoint : list.endpoints) {
    if (endpoint->local) list.local = endpoint.get();
    if (endpoint->available) list.available.push_back(endpoint.get());
  }
  const Value& timeout = definition["timeout"];
  list.timeout = timeout.is_number() && timeout.f64() >= 0 ? from_ms(timeout.f64()) : Duration(-1);
  list.idempotent = definition["idempotent"].boolean_or(false);
  list.strategy->on_endpoints_changed();
}

void Registry::refresh_guards(ActionList& list, const Value& definition) {
  list.retry.reset();
  if (const Value& retry = definition["retryPolicy"]; !retry.is_null())
    list.retry = overlaid(config_.retry, retry);

  GuardPolicies policies;
  if (!list.name.starts_with('$')) {  // Of the node itself: there is no other to ask.
    policies = {overlaid(config_.guards.breaker, definition["circuitBreaker"]),
                overlaid(config_.guards.outlier, definition["outlierEjection"])};
  }
  const bool are_others = !(policies == list.guards);
  list.guards = policies;
  list.outlier_records.clear();
  if (!policies.enabled() && !are_others) return;
  bool any = false;  // That no breaker and no ejection has taken out.
  for (const auto& endpoint : list.endpoints) {
    if (are_others) endpoint->guard.reset();
    endpoint->available = true;
    if (!policies.enabled()) continue;
    if (endpoint->guard == nullptr) endpoint->guard = std::make_shared<EndpointGuard>(policies);
    list.outlier_records.push_back(&endpoint->guard->outlier);
  }
  if (!policies.enabled()) return;
  (void)OutlierEjection(policies.outlier).enforce(list.outlier_records);
  for (const auto& endpoint : list.endpoints) {
    endpoint->available = endpoint->guard->breaker.admits() && !endpoint->guard->outlier.ejected;
    any = any || endpoint->available;
  }
  if (any) return;
  // Panic: rather an endpoint that is doing badly than none.
  for (const auto& endpoint : list.endpoints) endpoint->available = endpoint->guard->breaker.admits();
}

void Registry::refresh(EventList& list) {
  list.available.clear();
  list.has_local = false;
  for (const auto& endpoint : list.endpoints) {
    list.has_local = list.has_local || endpoint->local;
    if (endpoint->available) list.available.push_back(endpoint.get());
  }
  list.strategy->on_endpoints_changed();
}

std::string Registry::register_remote(Node& node) {
  WEFT_ASSERT(!node.local);
  complaint_.clear();
  complaints_ = 0;
  const auto is_long = [this](std::string_view what, std::string_view name) {
    if (name.size() <= kNameBytesMax) return false;
    complain("the " + std::string(what) + " '" + std::string(name.substr(0, 60)) + "…' has " +
             std::to_string(name.size()) + " bytes, allowed are " + std::to_string(kNameBytesMax) + ".");
    return true;
  };
  const std::uint64_t generation = ++generation_;
  std::erase_if(services_, [&node](const auto& entry) { return entry->node == &node; });

  std::size_t services = 0;
  for (const Value& service : std::as_const(node.services).items()) {
    const std::string_view name = service["name"].str_or({});
    if (name.empty()) continue;
    if (++services > config_.services_per_node_max) {
      complain("more than " + std::to_string(config_.services_per_node_max) +
               " services (option registry.services_per_node_max).");
      break;
    }
    if (is_long("service", name) || is_long("full name", service["fullName"].str_or({})) ||
        is_long("version", service["version"].str_or({}))) {
      continue;
    }
    auto entry = std::make_unique<ServiceEntry>();
    entry->node = &node;
    entry->name = name;
    const std::string_view given = service["fullName"].str_or({});
    entry->full_name =
        given.empty() ? full_service_name(name, service["version"], service["settings"]) : std::string(given);
    entry->definition = &service;

    std::size_t entries = 0;
    for_each_entry(service["actions"], [&](std::string_view action, const Value& definition) {
      if (++entries > config_.actions_per_service_max || is_long("action", action)) return;
      const std::string_view visibility = definition["visibility"].str_or({});
      if (visibility == "protected" || visibility == "private")
        return;  // Not for us, whatever the peer says.
      ActionList& list = action_list(action, definition);
      const auto same = std::find_if(list.endpoints.begin(), list.endpoints.end(),
                                     [&node](const auto& endpoint) { return endpoint->node == &node; });
      ActionEndpoint* endpoint = nullptr;
      if (same != list.endpoints.end()) {
        endpoint = same->get();
        if (endpoint->latency_at < node.since) endpoint->latency_ms = -1;  // Of the process before.
      } else {
        endpoint = list.endpoints.emplace_back(std::make_unique<ActionEndpoint>()).get();
        endpoint->node = &node;
        endpoint->group = &list.group;
      }
      endpoint->definition = &definition;
      endpoint->service = entry->full_name;
      endpoint->generation = generation;
    });
    for_each_entry(service["events"], [&](std::string_view pattern, const Value& definition) {
      const std::string_view own_group = definition["group"].str_or({});
      if (++entries > config_.actions_per_service_max || is_long("event", pattern) ||
          is_long("group", own_group))
        return;
      EventList& list =
          event_list(pattern, own_group.empty() ? std::string_view(entry->name) : own_group, definition);
      const auto same = std::find_if(list.endpoints.begin(), list.endpoints.end(), [&](const auto& endpoint) {
        return endpoint->node == &node && endpoint->service == entry->full_name;
      });
      EventEndpoint* endpoint = nullptr;
      if (same != list.endpoints.end()) {
        endpoint = same->get();
      } else {
        endpoint = list.endpoints.emplace_back(std::make_unique<EventEndpoint>()).get();
        endpoint->node = &node;
        endpoint->service = entry->full_name;
      }
      endpoint->definition = &definition;
      endpoint->generation = generation;
    });
    if (entries > config_.actions_per_service_max) {
      complain("service '" + entry->full_name + "' has more than " +
               std::to_string(config_.actions_per_service_max) +
               " actions and events (option registry.actions_per_service_max).");
    }
    services_.push_back(std::move(entry));
  }
  remove_endpoints(node, generation);
  if (complaints_ > 1) complaint_ += " And " + std::to_string(complaints_ - 1) + " more.";
  return std::exchange(complaint_, {});
}

void Registry::unregister_node(Node& node) {
  std::erase_if(services_, [&node](const auto& entry) { return entry->node == &node; });
  remove_endpoints(node, 0);
}

void Registry::remove_endpoints(const Node& node, std::uint64_t keep_generation) {
  const auto is_stale = [&](const auto& endpoint) {
    return endpoint->node == &node && !endpoint->local && endpoint->generation != keep_generation;
  };
  const auto concerns = [&](const auto& endpoint) { return endpoint->node == &node; };
  for (const auto& list : actions_in_order_) {
    if (std::none_of(list->endpoints.begin(), list->endpoints.end(), concerns)) continue;
    std::erase_if(list->endpoints, is_stale);
    refresh(*list);
  }
  drop_orphaned_actions();
  bool dropped = false;
  for (const auto& list : events_) {
    if (std::none_of(list->endpoints.begin(), list->endpoints.end(), concerns)) continue;
    std::erase_if(list->endpoints, is_stale);
    refresh(*list);
    dropped = dropped || list->endpoints.empty();
  }
  if (dropped) {  // Patterns nobody subscribes to any more must not pile up.
    std::erase_if(events_, [this](const auto& list) {
      if (!list->endpoints.empty()) return false;
      events_by_key_.erase(event_key(list->pattern, list->group));
      return true;
    });
    forget_matches();
  }
}

void Registry::register_local(const LocalServiceParts& parts) {
  complaints_ = 0;
  auto entry = std::make_unique<ServiceEntry>();
  entry->node = &nodes_.self();
  entry->name = (*parts.definition)["name"].str_or({});
  entry->full_name = parts.full_name;
  entry->definition = parts.definition;
  const Value& definitions = (*parts.definition)["actions"];
  for (const auto& [name, action] : parts.actions) {
    const Value& definition = definitions[name];
    ActionList& list = action_list(name, definition);
    auto endpoint = std::make_unique<ActionEndpoint>();
    endpoint->node = &nodes_.self();
    endpoint->local = true;
    endpoint->group = &list.group;
    endpoint->definition = &definition;
    endpoint->service = entry->full_name;
    endpoint->local_action = action;
    list.endpoints.push_back(std::move(endpoint));
    refresh(list);
  }
  for (std::size_t i = 0; i < parts.subscriptions.size(); ++i) {
    const auto& [pattern, group] = parts.patterns_and_groups[i];
    EventList& list = event_list(pattern, group, *parts.subscription_definitions[i]);
    auto endpoint = std::make_unique<EventEndpoint>();
    endpoint->node = &nodes_.self();
    endpoint->local = true;
    endpoint->definition = parts.subscription_definitions[i];
    endpoint->service = parts.full_name;
    endpoint->subscription = parts.subscriptions[i];
    list.endpoints.push_back(std::move(endpoint));
    refresh(list);
  }
  services_.push_back(std::move(entry));
  local_matches_.clear();
  if (!complaint_.empty()) log_.warn(std::exchange(complaint_, {}));
}

void Registry::unregister_local(std::string_view full_name) {
  for (const auto& list : actions_in_order_) {
    const auto removed =
        std::erase_if(list->endpoints, [&](const auto& e) { return e->local && e->service == full_name; });
    if (removed > 0) refresh(*list);
  }
  for (const auto& list : events_) {
    const auto removed =
        std::erase_if(list->endpoints, [&](const auto& e) { return e->local && e->service == full_name; });
    if (removed > 0) refresh(*list);
  }
  std::erase_if(events_, [this](const auto& list) {
    if (!list->endpoints.empty()) return false;
    events_by_key_.erase(event_key(list->pattern, list->group));
    return true;
  });
  forget_matches();
  // Last: the endpoints' service names live in it.
  const Node& self = nodes_.self();
  std::erase_if(services_,
                [&](const auto& entry) { return entry->node == &self && entry->full_name == full_name; });
}

void Registry::drop_orphaned_actions() {
  const auto is_orphaned = [](const auto& list) { return list->endpoints.empty(); };
  const auto orphaned = std::count_if(actions_in_order_.begin(), actions_in_order_.end(), is_orphaned);
  if (static_cast<std::size_t>(orphaned) <= kOrphanedActionsMax) return;
  std::erase_if(actions_in_order_, [&](const auto& list) {
    if (!is_orphaned(list)) return false;
    actions_.erase(list->name);
    return true;
  });
}

ActionList* Registry::find_action(std::string_view name) {
  const auto found = actions_.find(name);
  return found == actions_.end() ? nullptr : found->second;
}

Result<const Endpoint*> Registry::select(Strategy& strategy, std::span<const Endpoint* const> endpoints,
                                         const Selection& selection) {
  if (endpoints.size() == 1) return endpoints.front();
  try {
    return strategy.select(endpoints, selection);
  } catch (...) {  // A strategy of the user's.
    const Error error = Error::from_exception(std::current_exception());
    log_.error("A strategy failed: ", error.to_string());
    return error;
  }
}

Result<ActionEndpoint*> Registry::pick(ActionList& list, const Selection& selection, std::string_view avoid) {
  if (list.available.empty()) return Error::service_not_available(list.name);
  const auto is_unwanted = [avoid](const Endpoint* endpoint) {
    return !avoid.empty() && endpoint->node->id == avoid;
  };
  const bool local_available = list.local != nullptr && list.local->available;
  const bool local_first = config_.prefer_local || list.name.front() == '$';
  if (local_available && local_first && (!is_unwanted(list.local) || list.available.size() == 1))
    return list.local;
  const Result<const Endpoint*> chosen = select(*list.strategy, list.available, selection);
  if (!chosen) return chosen.error();
  if (*chosen == nullptr) return Error::service_not_available(list.name);
  if (is_unwanted(*chosen)) {
    // The next one in the list: the strategy's word on who comes second is not to be had.
    const auto at = std::find(list.available.begin(), list.available.end(), *chosen);
    const auto next = at + 1 == list.available.end() ? list.available.begin() : at + 1;
    return static_cast<ActionEndpoint*>(const_cast<Endpoint*>(*next));
  }
  return static_cast<ActionEndpoint*>(const_cast<Endpoint*>(*chosen));
}

Result<ActionEndpoint*> Registry::pick_on(std::string_view action, std::string_view node_id) {
  if (ActionList* list = find_action(action)) {
    for (const auto& endpoint : list->endpoints) {
      if (endpoint->node->id == node_id) return endpoint.get();
    }
  }
  return Error::service_not_found(action, node_id);
}

template <typename Counts>
const std::vector<EventList*>& Registry::match(Matches& cache, std::string_view event, Counts counts) {
  if (const auto found = cache.find(event); found != cache.end()) return found->second;
  std::vector<EventList*> matching;
  for (const auto& list : events_) {
    if (counts(*list) && matches_strict(event, list->pattern)) matching.push_back(list.get());
  }
  if (cache.size() >= kMatchCacheMax) cache.clear();
  return cache.emplace(event, std::move(matching)).first->second;
}

const std::vector<EventList*>& Registry::match_event(std::string_view event) {
  return match(matches_, event, [](const EventList&) { return true; });
}

const std::vector<EventList*>& Registry::match_local(std::string_view event) {
  return match(local_matches_, event, [](const EventList& list) { return list.has_local; });
}

EventEndpoint* Registry::pick_event(EventList& list, const Selection& selection) {
  if (list.available.empty()) return nullptr;
  if (config_.prefer_local) {
    if (EventEndpoint* own = pick_local(list, selection)) return own;
  }
  const Result<const Endpoint*> chosen = select(*list.strategy, list.available, selection);
  return chosen ? static_cast<EventEndpoint*>(const_cast<Endpoint*>(*chosen)) : nullptr;
}

EventEndpoint* Registry::pick_event_among(EventList& list, std::span<const Endpoint* const> endpoints,
                                          const Selection& selection) {
  if (endpoints.empty()) return nullptr;
  if (endpoints.size() == list.available.size()) endpoints = list.available;
  // What a strategy has drawn up for the whole list does not fit a part of it, and the other way round.
  const bool is_part = endpoints.size() > 1 && endpoints.size() < list.available.size();
  if (is_part) list.strategy->on_endpoints_changed();
  const Result<const Endpoint*> chosen = select(*list.strategy, endpoints, selection);
  if (is_part) list.strategy->on_endpoints_changed();
  return chosen ? static_cast<EventEndpoint*>(const_cast<Endpoint*>(*chosen)) : nullptr;
}

EventEndpoint* Registry::pick_local(EventList& list, const Selection& selection) {
  const auto is_local = [](const Endpoint* endpoint) { return endpoint->local; };
  const auto first = std::find_if(list.available.begin(), list.available.end(), is_local);
  if (first == list.available.end()) return nullptr;
  if (std::none_of(first + 1, list.available.end(), is_local))  // Nearly always.
    return static_cast<EventEndpoint*>(const_cast<Endpoint*>(*first));
  std::vector<const Endpoint*> own;
  std::copy_if(first, list.available.end(), std::back_inserter(own), is_local);
  return pick_event_among(list, own, selection);
}

bool Registry::has_service(std::string_view full_name) const {
  return std::any_of(services_.begin(), services_.end(), [&](const auto& entry) {
    return entry->full_name == full_name && entry->node->available;
  });
}

std::size_t Registry::remote_action_endpoints(const Node& node) const {
  std::size_t count = 0;
  for (const auto& list : actions_in_order_) {
    for (const auto& endpoint : list->endpoints) count += endpoint->node == &node ? 1 : 0;
  }
  return count;
}

void Registry::endpoints_changed() {
  for (const auto& list : actions_in_order_) list->strategy->on_endpoints_changed();
  for (const auto& list : events_) list->strategy->on_endpoints_changed();
}

}  // namespace weft
