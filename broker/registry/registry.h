#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/guards/endpoint_guard.h"
#include "broker/guards/latency_quantile.h"
#include "broker/guards/retry_budget.h"
#include "broker/registry/endpoint.h"
#include "broker/registry/node_catalog.h"
#include "broker/strategy/strategy.h"
#include "lib/base/log.h"
#include "lib/error/result.h"

namespace weft {

// What the broker runs for a local endpoint; opaque here.
class LocalAction;
class LocalSubscription;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

// A service as a node announced it (or as this node offers it).
struct ServiceEntry {
  Node* node = nullptr;
  std::string name;
  std::string full_name;
  const Value* definition =
      nullptr;  // The service object of INFO; lives in the node, or in the local service.
};

struct ActionEndpoint : Endpoint {
  const Value* definition = nullptr;  // The action object of INFO.
  std::string_view service;           // Full name; lives in the definition's owner.
  std::shared_ptr<LocalAction> local_action;
  std::shared_ptr<EndpointGuard> guard;  // Null when its action is not guarded.
};

struct EventEndpoint : Endpoint {
  const Value* definition = nullptr;
  std::string service;  // Full name: two versions of a service on one node are two endpoints.
  std::shared_ptr<LocalSubscription> subscription;
};

// The endpoints of one action. Stays when the last one is gone, so that "not available" and "not found"
// differ; only a mesh with thousands of such names forgets them.
struct ActionList {
  std::string name;
  EndpointGroup group;                                     // Outlives the endpoints.
  std::vector<std::unique_ptr<ActionEndpoint>> endpoints;  // In order of registration.
  std::vector<const Endpoint*> available;                  // What the strategy chooses from.
  ActionEndpoint* local = nullptr;
  std::unique_ptr<Strategy> strategy;
  Duration timeout{-1};     // As the action's definition says; negative: nothing.
  bool idempotent = false;  // May be tried again when its node was lost.

  // As the definition says, over what the broker says.
  GuardPolicies guards;
  std::vector<OutlierRecord*> outlier_records;  // Of the endpoints' guards, in order.
  std::optional<RetryPolicy> retry;             // When the definition says anything.
  // Kept by the call engine, from the first call on.
  std::optional<RetryBudget> retry_budget;
  std::optional<RetryBudget> hedge_budget;
  std::unique_ptr<LatencyQuantile> latency;
};

// The endpoints of one subscription pattern in one group.
struct EventList {
  std::string pattern;
  std::string group;
  std::vector<std::unique_ptr<EventEndpoint>> endpoints;
  std::vector<const Endpoint*> available;
  bool has_local = false;
  std::unique_ptr<Strategy> strategy;
};

struct RegistryConfig {
  std::string strategy = "RoundRobin";
  Value strategy_options;
  bool prefer_local = true;
  std::size_t services_per_node_max = 2'000;
  std::size_t actions_per_service_max = 5'000;
  GuardPolicies guards;  // An action's definition goes before them …
  RetryPolicy retry;     // … and this.
};

// The full local replica of what the mesh offers: services, actions and events of every node.
//
// Pure: it is told of service lists coming and going, and answers who offers what. Lists keep the order of
// registration. Thread: loop thread only.
class Registry {
 public:
  // `strategies` and `random` are borrowed and outlive the registry. The default strategy must be makeable.
  Registry(NodeCatalog& nodes, RegistryConfig config, const StrategyTable& strategies, Random& random,
           Logger log);
  ~Registry();

  [[nodiscard]] NodeCatalog& nodes() { return nodes_; }
  [[nodiscard]] const NodeCatalog& nodes() const { return nodes_; }

  // Registers the services of `node->services` anew: what is gone is removed, what stayed keeps its place.
  // Gives what was left out and why, for the log; empty if nothing was.
  std::string register_remote(Node& node);
  // Removes all that `node` offers.
  void unregister_node(Node& node);

  // The local side. `definition` is the service object of INFO; it, the actions and subscriptions live until
  // unregister_local(). Keys of the maps are full action names and patterns as in the definition.
  struct LocalServiceParts {
    std::string full_name;
    const Value* definition = nullptr;
    std::vector<std::pair<std::string, std::shared_ptr<LocalAction>>> actions;
    std::vector<std::shared_ptr<LocalSubscription>> subscriptions;
    std::vector<std::pair<std::string, std::string>> patterns_and_groups;  // One for each subscription.
    std::vector<const Value*> subscription_definitions;
  };
  void register_local(const LocalServiceParts& parts);
  void unregister_local(std::string_view full_name);

  [[nodiscard]] ActionList* find_action(std::string_view name);
  // The endpoint for a call, by the rules: not found, not available, internal names local, the only one,
  // prefer local, the strategy. One of the node `avoid` only when there is no other.
  [[nodiscard]] Result<ActionEndpoint*> pick(ActionList& list, const Selection& selection,
                                             std::string_view avoid = {});
  // The endpoint of `node`, or service_not_found.
  [[nodiscard]] Result<ActionEndpoint*> pick_on(std::string_view action, std::string_view node_id);

  // The event lists whose pattern matches, in order of registration. Valid until the registry changes.
  [[nodiscard]] const std::vector<EventList*>& match_event(std::string_view event);
  // The same of those that this node subscribes to: for an event of another node, which must not cost more
  // the more patterns others announce.
  [[nodiscard]] const std::vector<EventList*>& match_local(std::string_view event);
  // Picks from an event list as for a call (prefer local, then strategy); nothing if none is available.
  [[nodiscard]] EventEndpoint* pick_event(EventList& list, const Selection& selection);

  // The same among this node's own subscriptions alone: for an event that another node has balanced.
  [[nodiscard]] EventEndpoint* pick_local(EventList& list, const Selection& selection);
  // The same among some of the list's available endpoints, by the strategy alone.
  [[nodiscard]] EventEndpoint* pick_event_among(EventList& list, std::span<const Endpoint* const> endpoints,
                                                const Selection& selection);
  [[nodiscard]] bool prefers_local() const { return config_.prefer_local; }

  [[nodiscard]] bool has_service(std::string_view full_name) const;
  [[nodiscard]] std::span<const std::unique_ptr<ServiceEntry>> services() const { return services_; }
  // Visits lists in order of first registration.
  [[nodiscard]] std::span<const std::unique_ptr<ActionList>> actions() const { return actions_in_order_; }
  [[nodiscard]] std::span<const std::unique_ptr<EventList>> events() const { return events_; }
  [[nodiscard]] std::size_t remote_action_endpoints(const Node& node) const;

  // Whether a strategy of this name can be made with these options; else a BrokerOptionsError.
  [[nodiscard]] Result<> check_strategy(std::string_view name, const Value& options) const;

  // A guard of the list's has taken an endpoint out or let it in again.
  void guards_changed(ActionList& list) { refresh(list); }

  // Strategies look again: a node came, went or was updated.
  void endpoints_changed();

 private:
  ActionList& action_list(std::string_view name, const Value& definition);
  EventList& event_list(std::string_view pattern, std::string_view group, const Value& definition);
  void set_strategy(ActionList& list, const Value& definition);
  std::unique_ptr<Strategy> make_strategy(const Value& definition, std::string_view what);
  using Matches = std::unordered_map<std::string, std::vector<EventList*>, StringHash, std::equal_to<>>;
  template <typename Counts>
  const std::vector<EventList*>& match(Matches& cache, std::string_view event, Counts counts);
  void forget_matches();
  // Notes what was left out of an announcement: the first thing is named, the others are counted.
  void complain(std::string what);
  // What the strategy chooses; nothing if it chooses nothing; an error if it throws.
  Result<const Endpoint*> select(Strategy& strategy, std::span<const Endpoint* const> endpoints,
                                 const Selection& selection);
  void remove_endpoints(const Node& node, std::uint64_t keep_generation);
  void drop_orphaned_actions();
  void refresh(ActionList& list);
  void refresh_guards(ActionList& list, const Value& definition);
  void refresh(EventList& list);

  NodeCatalog& nodes_;
  RegistryConfig config_;
  const StrategyTable& strategies_;
  Random& random_;
  Logger log_;

  std::vector<std::unique_ptr<ServiceEntry>> services_;
  std::vector<std::unique_ptr<ActionList>> actions_in_order_;
  std::unordered_map<std::string, ActionList*, StringHash, std::equal_to<>> actions_;
  std::vector<std::unique_ptr<EventList>> events_;
  std::unordered_map<std::string, EventList*, StringHash, std::equal_to<>> events_by_key_;
  Matches matches_;
  Matches local_matches_;
  std::string complaint_;  // Of the registration under way.
  std::size_t complaints_ = 0;
  std::uint64_t generation_ = 0;  // Of the last registration: what it did not name is gone.
};

// v2.users, staging.users or users, by the protocol's rules.
[[nodiscard]] std::string full_service_name(std::string_view name, const Value& version,
                                            const Value& settings);

}  // namespace weft
