#include "broker/options.h"

#include <string_view>

namespace weft {

namespace {

std::string ms_text(Duration duration) {
  return std::to_string(static_cast<long long>(to_ms(duration))) + " ms";
}

std::optional<Error> not_negative(std::string_view name, Duration duration) {
  if (duration >= Duration::zero()) return std::nullopt;
  return Error::broker_options("Option '" + std::string(name) + "' is " + ms_text(duration) +
                               ": it must be 0 or more.");
}

std::string text_of(double number) {
  return std::to_string(number);
}

std::optional<Error> must_be(bool good, std::string_view name, const std::string& is,
                             std::string_view allowed) {
  if (good) return std::nullopt;
  return Error::broker_options("Option '" + std::string(name) + "' is " + is + ": it must be " +
                               std::string(allowed) + ".");
}

std::optional<Error> positive(std::string_view name, Duration duration) {
  return must_be(duration > Duration::zero(), name, ms_text(duration), "more than 0");
}

std::optional<Error> share(std::string_view name, double value, double max, std::string_view allowed) {
  return must_be(value > 0 && value <= max, name, text_of(value), allowed);
}

std::optional<Error> fault_of(std::string_view name, const BudgetPolicy& policy) {
  const std::string prefix(name);
  if (auto bad = must_be(policy.ratio >= 0 && policy.ratio <= 100, prefix + ".ratio", text_of(policy.ratio),
                         "0 to 100"))
    return bad;
  if (auto bad = must_be(policy.min_per_second >= 0 && policy.min_per_second <= 1e9,
                         prefix + ".min_per_second", text_of(policy.min_per_second), "0 or more"))
    return bad;
  return must_be(policy.burst >= 1 && policy.burst <= 1e9, prefix + ".burst", text_of(policy.burst),
                 "1 or more");
}

}  // namespace

std::optional<Error> fault_of(const RetryPolicy& policy) {
  if (auto bad = not_negative("retry.delay", policy.delay)) return bad;
  if (auto bad = not_negative("retry.max_delay", policy.max_delay)) return bad;
  if (auto bad = must_be(policy.retries >= 0, "retry.retries", std::to_string(policy.retries), "0 or more"))
    return bad;
  return must_be(policy.factor >= 1.0, "retry.factor", text_of(policy.factor), "1 or more");
}

std::optional<Error> fault_of(const CircuitBreakerPolicy& policy) {
  if (auto bad = share("circuit_breaker.threshold", policy.threshold, 1, "above 0 and at most 1")) return bad;
  if (auto bad = positive("circuit_breaker.window", policy.window)) return bad;
  if (auto bad = positive("circuit_breaker.half_open_time", policy.half_open_time)) return bad;
  return must_be(policy.min_request_count > 0, "circuit_breaker.min_request_count", "0", "1 or more");
}

std::optional<Error> fault_of(const OutlierPolicy& policy) {
  if (auto bad = share("outlier.failure_rate", policy.failure_rate, 1, "above 0 and at most 1")) return bad;
  if (auto bad =
          share("outlier.max_ejection_percent", policy.max_ejection_percent, 100, "above 0 and at most 100"))
    return bad;
  if (auto bad = positive("outlier.window", policy.window)) return bad;
  if (auto bad = positive("outlier.ejection_time", policy.ejection_time)) return bad;
  return must_be(policy.ejection_time_max >= policy.ejection_time, "outlier.ejection_time_max",
                 ms_text(policy.ejection_time_max), "at least as long as 'outlier.ejection_time'");
}

std::optional<Error> fault_of(const BulkheadPolicy& policy) {
  return must_be(policy.concurrency > 0, "bulkhead.concurrency", "0", "1 or more, or nothing would ever run");
}

Result<> validate(const BrokerOptions& options) {
  const auto check_name = [](std::string_view option, std::string_view name,
                             std::string_view forbidden) -> std::optional<Error> {
    if (name.size() > 200) {
      return Error::broker_options("Option '" + std::string(option) + "' has " + std::to_string(name.size()) +
                                   " characters: at most 200 are allowed.");
    }
    for (const char c : name) {
      if (static_cast<unsigned char>(c) > ' ' && forbidden.find(c) == std::string_view::npos) continue;
      return Error::broker_options("Option '" + std::string(option) + "' is \"" + std::string(name) +
                                   "\": blanks and the characters " + std::string(forbidden) +
                                   " are not allowed, because names become parts of subjects and datagrams.");
    }
    return std::nullopt;
  };
  if (auto error = check_name("node_id", options.node_id, "*>|/,")) return *error;
  if (auto error = check_name("name_space", options.name_space, "*>|")) return *error;
  if (!options.metadata.is_null() && !options.metadata.is_object()) {
    return Error::broker_options("Option 'metadata' is a " + std::string(to_string(options.metadata.kind())) +
                                 ": it must be an object.");
  }
  const std::pair<std::string_view, Duration> durations[] = {
      {"request_timeout", options.request_timeout},
      {"registry.stop_delay", options.registry.stop_delay},
      {"registry.announce_debounce", options.registry.announce_debounce},
      {"heartbeat.interval", options.heartbeat.interval},
      {"heartbeat.timeout", options.heartbeat.timeout},
      {"heartbeat.clean_offline_nodes", options.heartbeat.clean_offline_nodes},
      {"tracking.shutdown_timeout", options.tracking.shutdown_timeout},
      {"dependency_timeout", options.dependency_timeout},
  };
  for (const auto& [name, duration] : durations) {
    if (auto error = not_negative(name, duration)) return *error;
  }
  if (options.heartbeat.interval > Duration::zero() &&
      options.heartbeat.timeout <= options.heartbeat.interval) {
    return Error::broker_options("Option 'heartbeat.timeout' is " + ms_text(options.heartbeat.timeout) +
                                 ": it must be longer than 'heartbeat.interval' (" +
                                 ms_text(options.heartbeat.interval) + "), or healthy nodes are dropped.");
  }
  if (options.gossip.period < std::chrono::milliseconds(100)) {
    return Error::broker_options("Option 'gossip.period' is " + ms_text(options.gossip.period) +
                                 ": it must be 100 ms or more.");
  }
  const std::optional<Error> faults[] = {fault_of(options.retry),
                                         fault_of("retry_budget", options.retry_budget),
                                         fault_of("hedge_budget", options.hedge_budget),
                                         fault_of(options.circuit_breaker),
                                         fault_of(options.outlier),
                                         fault_of(options.bulkhead),
                                         not_negative("idempotency.ttl", options.idempotency.ttl)};
  for (const std::optional<Error>& fault : faults) {
    if (fault) return *fault;
  }
  if (options.max_call_level < 0) {
    return Error::broker_options("Option 'max_call_level' is " + std::to_string(options.max_call_level) +
                                 ": it must be 0 (no limit) or more.");
  }
  const std::pair<std::string_view, std::size_t> limits[] = {
      {"registry.nodes_max", options.registry.nodes_max},
      {"registry.services_per_node_max", options.registry.services_per_node_max},
      {"registry.actions_per_service_max", options.registry.actions_per_service_max},
      {"registry.catalog_bytes_max", options.registry.catalog_bytes_max},
      {"idempotency.entries_max", options.idempotency.entries_max},
  };
  for (const auto& [name, limit] : limits) {
    if (limit > 0) continue;
    return Error::broker_options("Option '" + std::string(name) +
                                 "' is 0: nothing would be known; give at least 1.");
  }
  for (const auto& [name, factory] : options.strategies) {
    if (factory) continue;
    return Error::broker_options("Option 'strategies' has nothing under '" + name +
                                 "': it must be a function that makes the strategy.");
  }
  const std::pair<std::string_view, std::size_t> calls[] = {
      {"transit.pending_requests_max", options.transit.pending_requests_max},
      {"transit.served_max", options.transit.served_max},
      {"transit.served_bytes_max", options.transit.served_bytes_max},
  };
  for (const auto& [name, limit] : calls) {
    if (limit > 0) continue;
    return Error::broker_options("Option '" + std::string(name) +
                                 "' is 0: no remote call could be made; give at least 1.");
  }
  return {};
}

Value describe(const BrokerOptions& options) {
  const auto budget = [](const BudgetPolicy& policy) {
    return Value{{"enabled", policy.enabled},
                 {"ratio", policy.ratio},
                 {"minPerSecond", policy.min_per_second},
                 {"burst", policy.burst}};
  };
  return Value{
      {"nodeID", options.node_id},
      {"namespace", options.name_space},
      {"metadata", options.metadata.is_null() ? Value::object() : options.metadata},
      {"serializer", options.serializer},
      {"requestTimeout", to_ms(options.request_timeout)},
      {"maxCallLevel", options.max_call_level},
      {"retryPolicy", to_definition(options.retry)},
      {"retryBudget", budget(options.retry_budget)},
      {"hedgeBudget", budget(options.hedge_budget)},
      {"circuitBreaker", to_definition(options.circuit_breaker)},
      {"outlierEjection", to_definition(options.outlier)},
      {"bulkhead", to_definition(options.bulkhead)},
      {"idempotency",
       {{"ttl", to_ms(options.idempotency.ttl)},
        {"maxEntries", options.idempotency.entries_max},
        {"maxBytes", options.idempotency.bytes_max}}},
      {"registry",
       {{"strategy", options.registry.strategy},
        {"strategyOptions", options.registry.strategy_options},
        {"preferLocal", options.registry.prefer_local},
        {"stopDelay", to_ms(options.registry.stop_delay)}}},
      {"heartbeatInterval", to_ms(options.heartbeat.interval) / 1000},
      {"heartbeatTimeout", to_ms(options.heartbeat.timeout) / 1000},
      {"gossipPeriod", to_ms(options.gossip.period) / 1000},
      {"transit",
       {{"maxQueueSize", options.transit.pending_requests_max},
        {"disableVersionCheck", options.transit.disable_version_check}}},
      {"tracking",
       {{"enabled", options.tracking.enabled},
        {"shutdownTimeout", to_ms(options.tracking.shutdown_timeout)}}},
      {"disableBalancer", options.disable_balancer},
      {"dependencyTimeout", to_ms(options.dependency_timeout)},
      {"internalServices", options.internal_services},
      {"logLevel", to_string(options.log_level)},
  };
}

}  // namespace weft
