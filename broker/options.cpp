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

}  // namespace

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
      {"retry.delay", options.retry.delay},
      {"retry.max_delay", options.retry.max_delay},
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
  if (options.retry.retries < 0) {
    return Error::broker_options("Option 'retry.retries' is " + std::to_string(options.retry.retries) +
                                 ": it must be 0 or more.");
  }
  if (!(options.retry.factor >= 1.0)) {
    return Error::broker_options("Option 'retry.factor' is " + std::to_string(options.retry.factor) +
                                 ": it must be 1 or more.");
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
  };
  for (const auto& [name, limit] : limits) {
    if (limit > 0) continue;
    return Error::broker_options("Option '" + std::string(name) +
                                 "' is 0: nobody would be known; give at least 1.");
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
  return Value{
      {"nodeID", options.node_id},
      {"namespace", options.name_space},
      {"metadata", options.metadata.is_null() ? Value::object() : options.metadata},
      {"serializer", options.serializer},
      {"requestTimeout", to_ms(options.request_timeout)},
      {"maxCallLevel", options.max_call_level},
      {"retryPolicy",
       {{"enabled", options.retry.enabled},
        {"retries", options.retry.retries},
        {"delay", to_ms(options.retry.delay)},
        {"maxDelay", to_ms(options.retry.max_delay)},
        {"factor", options.retry.factor}}},
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
