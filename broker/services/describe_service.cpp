#include "broker/services/service_host.h"

namespace weft {

namespace {

void erase_path(Value& settings, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) {
    settings.erase(path);
    return;
  }
  if (Value* inner = settings.find(path.substr(0, dot))) erase_path(*inner, path.substr(dot + 1));
}

Value published_settings(const Value& settings) {
  Value published = settings;
  for (const Value& path : settings["$secureSettings"].items()) {
    if (path.is_string()) erase_path(published, path.str());
  }
  published.erase("$secureSettings");
  return published;
}

std::string_view visibility_name(Visibility visibility) {
  switch (visibility) {
    case Visibility::kPublished:
      return "published";
    case Visibility::kPublic:
      return "public";
    case Visibility::kProtected:
      return "protected";
    case Visibility::kPrivate:
      return "private";
  }
  return "published";
}

// A Moleculer node fails on an INFO that names a strategy it does not have, so others go by a name of ours.
void set_strategy(Value& definition, const std::string& strategy, const Value& options) {
  if (strategy.empty()) return;
  const bool is_common = StrategyTable::is_moleculers(strategy);
  definition.set(is_common ? "strategy" : "weftStrategy", strategy);
  if (!options.is_null()) definition.set(is_common ? "strategyOptions" : "weftStrategyOptions", options);
}

Value describe_action(const Service& service, const Service::ActionSpec& spec) {
  const ActionOptions& options = spec.options;
  Value definition = options.extra.is_object() ? options.extra : Value::object();
  const Value params = options.params.is_null() ? spec.handler->params_schema() : options.params;
  if (!params.is_null()) definition.set("params", params);
  if (options.visibility != Visibility::kPublished)
    definition.set("visibility", visibility_name(options.visibility));
  if (options.timeout) definition.set("timeout", to_ms(*options.timeout));
  if (options.idempotent) definition.set("idempotent", true);
  if (options.retry) definition.set("retryPolicy", to_definition(*options.retry));
  if (options.circuit_breaker) definition.set("circuitBreaker", to_definition(*options.circuit_breaker));
  if (options.outlier) definition.set("outlierEjection", to_definition(*options.outlier));
  if (options.bulkhead) definition.set("bulkhead", to_definition(*options.bulkhead));
  set_strategy(definition, options.strategy, options.strategy_options);
  if (!options.description.empty()) definition.set("description", options.description);
  definition.set("rawName", spec.name);
  definition.set("name", full_action_name(service, spec.name));
  return definition;
}

}  // namespace

std::string full_action_name(const Service& service, std::string_view action) {
  if (service.settings()["$noServiceNamePrefix"].boolean_or(false)) return std::string(action);
  return service.full_name() + "." + std::string(action);
}

Value describe_service(const Service& service) {
  Value definition{{"name", service.name()}};
  if (!service.version_value().is_null()) definition.set("version", service.version_value());
  definition.set("fullName", service.full_name());
  definition.set("settings", published_settings(service.settings()));
  definition.set("metadata", service.metadata_value());
  Value actions = Value::object();
  for (const auto& spec : service.action_specs()) {
    if (spec.options.visibility == Visibility::kPrivate) continue;
    actions.set(full_action_name(service, spec.name), describe_action(service, spec));
  }
  definition.set("actions", std::move(actions));
  Value events = Value::object();
  for (const auto& spec : service.event_specs()) {
    Value event{{"name", spec.pattern}};
    if (!spec.options.group.empty()) event.set("group", spec.options.group);
    set_strategy(event, spec.options.strategy, spec.options.strategy_options);
    events.set(spec.pattern, std::move(event));
  }
  definition.set("events", std::move(events));
  return definition;
}

}  // namespace weft
