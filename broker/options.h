#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/guards/policies.h"
#include "broker/strategy/strategy.h"
#include "lib/base/log.h"
#include "lib/error/result.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

class Broker;

struct RegistryOptions {
  // RoundRobin, Random, CpuUsage, Latency, Shard, or one of BrokerOptions::strategies.
  std::string strategy = "RoundRobin";
  Value strategy_options;
  // A local endpoint of an action or event is taken before any other.
  bool prefer_local = true;
  // Between announcing an empty service list and refusing requests, when stopping.
  Duration stop_delay = std::chrono::milliseconds(100);
  // Bursts of service changes are announced together: a change goes out at once, further ones this much
  // later.
  Duration announce_debounce = std::chrono::milliseconds(50);
  // Limits on what peers may announce; what is beyond them is left out with a warning.
  std::size_t nodes_max = 10'000;
  std::size_t services_per_node_max = 2'000;
  std::size_t actions_per_service_max = 5'000;
  // Memory for all that they announce together; one node gets at most a sixteenth of it.
  std::size_t catalog_bytes_max = 512UL << 20;
};

struct HeartbeatOptions {
  Duration interval = std::chrono::seconds(10);  // 0 turns heartbeats off.
  Duration timeout = std::chrono::seconds(30);   // Silence after which a node is unavailable.
  Duration clean_offline_nodes = std::chrono::minutes(10);
};

// Peer to peer transporters.
struct GossipSettings {
  Duration period = std::chrono::seconds(2);
  bool use_hostname =
      true;  // Dial nodes that were heard of through others by their host name, else by their first IP.
};

struct TransitOptions {
  // Requests that wait for an answer; above it calls fail with QueueIsFullError.
  std::size_t pending_requests_max = 50'000;
  // Requests and events of other nodes whose handlers run, and the bytes they brought; above it requests are
  // answered with QueueIsFullError and events are dropped.
  std::size_t served_max = 50'000;
  std::size_t served_bytes_max = 256UL << 20;
  // Accept packets of another protocol version.
  bool disable_version_check = false;
};

struct TrackingOptions {
  bool enabled = true;                                  // stop() waits for running calls …
  Duration shutdown_timeout = std::chrono::seconds(5);  // … at most this long.
};

// Settings of a broker. Every field has a default; a bad one is a BrokerOptionsError that names it.
struct BrokerOptions {
  std::string node_id;     // Unique in the namespace. Empty: host name and process id.
  std::string name_space;  // Only nodes of one namespace see each other.
  Value metadata;          // Shown to every node.

  std::string serializer = "JSON";  // The same for the whole mesh: JSON or MsgPack.

  Duration request_timeout{};  // 0: none. A call's and an action's own timeout go before it.
  int max_call_level = 0;      // 0: no limit.
  RetryPolicy retry;           // An action's own goes before it, and what a call says before both.
  BudgetPolicy retry_budget;   // Of each action, whoever asks for the tries.
  BudgetPolicy hedge_budget{.ratio = 0.1, .min_per_second = 5, .burst = 50};
  CircuitBreakerPolicy circuit_breaker;  // Of each endpoint this node calls.
  OutlierPolicy outlier;                 // Among the endpoints of an action.
  BulkheadPolicy bulkhead;               // Of each action and event this node serves.
  IdempotencyPolicy idempotency;
  // Which failures are tried again; by default those that say they may be.
  std::function<bool(const Error&)> is_retryable;
  // Which failures count against the endpoint; by default those of code 500 and above, timeouts among them.
  std::function<bool(const Error&)> is_failure;
  RegistryOptions registry;
  HeartbeatOptions heartbeat;
  GossipSettings gossip;
  TransitOptions transit;
  TrackingOptions tracking;
  bool disable_balancer = false;  // Let the transporter spread calls and events (NATS).

  Duration dependency_timeout{};  // 0: wait for ever.
  bool internal_services = true;  // Offer `$node`.
  bool send_stack = false;        // Let the text of handlers' stacks cross to peers.

  LogLevel log_level = LogLevel::kInfo;

  // Strategies of the user's own, by name.
  std::map<std::string, StrategyFactory> strategies;

  // Run once each, in this order. started and stopped run on the loop thread.
  std::function<void(Broker&)> created;
  std::function<void(Broker&)> started;
  std::function<void(Broker&)> stopped;
  // The broker cannot go on (its node id is taken) and is stopping. Runs on the loop thread.
  std::function<void(Broker&, const Error&)> on_fatal;
};

// What is wrong with `options`, or nothing. Names the option, the value and what is allowed.
[[nodiscard]] Result<> validate(const BrokerOptions& options);

// The same of one policy.
[[nodiscard]] std::optional<Error> fault_of(const RetryPolicy& policy);
[[nodiscard]] std::optional<Error> fault_of(const CircuitBreakerPolicy& policy);
[[nodiscard]] std::optional<Error> fault_of(const OutlierPolicy& policy);
[[nodiscard]] std::optional<Error> fault_of(const BulkheadPolicy& policy);

// The options as `$node.options` shows them; secrets are replaced by "***".
[[nodiscard]] Value describe(const BrokerOptions& options);

}  // namespace weft
