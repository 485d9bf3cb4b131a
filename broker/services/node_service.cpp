#include "broker/services/node_service.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "lib/value/iso_time.h"

namespace weft {

namespace {

// Flags are booleans, or what a shell or URL makes of them.
bool flag(const Context& context, std::string_view name, bool fallback) {
  const Value& value = context.params.value()[name];
  if (value.is_bool()) return value.boolean();
  if (value.is_number()) return value.f64() != 0;
  const std::string_view text = value.str_or({});
  if (text == "true" || text == "1" || text == "on") return true;
  if (text == "false" || text == "0" || text == "off") return false;
  if (value.is_null()) return fallback;
  Value row{{"type", "boolean"},
            {"message", "The '" + std::string(name) + "' field must be a boolean."},
            {"field", name}};
  throw ValidationError("Parameters validation error!", "VALIDATION_ERROR", arr(std::move(row)));
}

Value flag_rule(bool fallback = false) {
  return Value{{"type", "boolean"}, {"optional", true}, {"convert", true}, {"default", fallback}};
}

double seconds(Instant instant) {
  return std::chrono::duration<double>(instant.time_since_epoch()).count();
}

bool is_internal(std::string_view name) {
  return name.starts_with('$');
}

Value without_internal_events(const Value& events) {
  Value shown = Value::object();
  for (const Member& member : events.members()) {
    if (!is_internal(member.key)) shown.append_member(member.key, member.value);
  }
  return shown;
}

Value service_row(const ServiceEntry& entry) {
  const Value& definition = *entry.definition;
  Value row{{"name", entry.name}};
  if (!definition["version"].is_null()) row.set("version", definition["version"]);
  row.set("fullName", entry.full_name);
  row.set("settings", definition["settings"].is_object() ? definition["settings"] : Value::object());
  row.set("metadata", definition["metadata"].is_object() ? definition["metadata"] : Value::object());
  row.set("local", entry.node->local);
  row.set("available", entry.node->available);
  return row;
}

Value list_services(const Registry& registry, const Context& context) {
  const bool only_local = flag(context, "onlyLocal", false);
  const bool only_available = flag(context, "onlyAvailable", false);
  const bool skip_internal = flag(context, "skipInternal", false);
  const bool with_actions = flag(context, "withActions", false);
  const bool with_events = flag(context, "withEvents", false);
  const bool grouping = flag(context, "grouping", true);

  Value rows = Value::array();
  std::map<std::string, std::size_t> row_of;  // By full name, when grouping.
  for (const auto& entry : registry.services()) {
    if (only_local && !entry->node->local) continue;
    if (only_available && !entry->node->available) continue;
    if (skip_internal && is_internal(entry->name)) continue;
    const auto known = grouping ? row_of.find(entry->full_name) : row_of.end();
    Value* row = nullptr;
    if (known != row_of.end()) {
      row = &rows.items()[known->second];
      if (entry->node->local) row->set("local", true);
      if (entry->node->available) row->set("available", true);
    } else {
      row_of.emplace(entry->full_name, rows.size());
      row = &rows.push_back(service_row(*entry));
      if (grouping) row->set("nodes", Value::array());
      if (with_actions) row->set("actions", Value::object());
      if (with_events) row->set("events", Value::object());
    }
    if (grouping) {
      (*row)["nodes"].push_back(entry->node->id);
    } else {
      row->set("nodeID", entry->node->id);
    }
    // A group's actions and events are the union over its nodes, whatever the order they were learnt in.
    const Value& definition = *entry->definition;
    if (with_actions) {
      for (const Member& action : definition["actions"].members())
        (*row)["actions"].set(action.key, action.value);
    }
    if (with_events) (*row)["events"].merge(without_internal_events(definition["events"]));
  }
  return rows;
}

template <typename List>
void add_endpoints(Value& row, const List& list) {
  Value endpoints = Value::array();
  for (const auto& endpoint : list.endpoints) {
    endpoints.push_back(Value{{"nodeID", endpoint->node->id},
                              {"state", endpoint->available},
                              {"available", endpoint->node->available}});
  }
  row.set("endpoints", std::move(endpoints));
}

// Whether the row is to be shown; fills what actions and events have in common.
template <typename List>
bool describe_list(const List& list, std::string_view name, const Context& context, Value& row) {
  const bool has_local =
      std::any_of(list.endpoints.begin(), list.endpoints.end(), [](const auto& e) { return e->local; });
  const bool available = std::any_of(list.endpoints.begin(), list.endpoints.end(),
                                     [](const auto& e) { return e->node->available; });
  if (flag(context, "onlyLocal", false) && !has_local) return false;
  if (flag(context, "skipInternal", false) && is_internal(name)) return false;
  if (flag(context, "onlyAvailable", false) && !available) return false;
  row.set("name", name);
  row.set("count", list.endpoints.size());
  row.set("hasLocal", has_local);
  row.set("available", available);
  return true;
}

Value list_actions(const Registry& registry, const Context& context) {
  Value rows = Value::array();
  for (const auto& list : registry.actions()) {
    Value row = Value::object();
    if (!describe_list(*list, list->name, context, row)) continue;
    if (!list->endpoints.empty()) row.set("action", *list->endpoints.front()->definition);
    if (flag(context, "withEndpoints", false)) add_endpoints(row, *list);
    rows.push_back(std::move(row));
  }
  return rows;
}

Value list_events(const Registry& registry, const Context& context) {
  Value rows = Value::array();
  for (const auto& list : registry.events()) {
    Value row = Value::object();
    if (!describe_list(*list, list->pattern, context, row)) continue;
    row.set("group", list->group);
    if (!list->endpoints.empty()) row.set("event", *list->endpoints.front()->definition);
    if (flag(context, "withEndpoints", false)) add_endpoints(row, *list);
    rows.push_back(std::move(row));
  }
  return rows;
}

Value health(const NodeServiceParts& parts) {
  Value report = parts.system.health();
  report.set("net", Value{{"ip", parts.registry.nodes().self().ip_list}});
  const std::int64_t now = parts.loop.wall_ms();
  report.set("time", Value{{"now", now}, {"iso", to_iso_time({now})}, {"utc", to_utc_text({now})}});
  return report;
}

}  // namespace

Value list_nodes(const NodeCatalog& nodes, bool with_services, bool only_available) {
  Value rows = Value::array();
  const auto add = [&](const Node& node) {
    if (only_available && !node.available) return;
    Value row{{"id", node.id},
              {"instanceID", node.instance_id},
              {"available", node.available},
              {"local", node.local},
              {"lastHeartbeatTime", seconds(node.last_heartbeat)},
              {"config", node.config.is_object() ? node.config : Value::object()},
              {"client", node.client.is_object() ? node.client : Value::object()},
              {"metadata", node.metadata},
              {"ipList", node.ip_list},
              {"port", node.port != 0 ? Value(node.port) : Value()},
              {"hostname", node.hostname},
              {"udpAddress", node.udp_address.empty() ? Value() : Value(node.udp_address)},
              {"cpu", node.cpu ? Value(*node.cpu) : Value()},
              {"cpuSeq", node.cpu_seq != 0 ? Value(node.cpu_seq) : Value()},
              {"seq", node.seq},
              {"offlineSince", node.offline_since ? Value(seconds(*node.offline_since)) : Value()}};
    if (with_services) row.set("services", node.services);
    rows.push_back(std::move(row));
  };
  add(nodes.self());
  nodes.for_each([&](const Node& node) {
    if (!node.local) add(node);
  });
  return rows;
}

std::shared_ptr<Service> make_node_service(NodeServiceParts parts) {
  auto service = std::make_shared<Service>("$node");
  const auto options = [](Value params) {
    ActionOptions made;
    made.params = std::move(params);
    made.extra = Value{{"cache", false}, {"tracing", false}};
    return made;
  };
  service->action(
      "list",
      [parts](Context& c) {
        return list_nodes(parts.registry.nodes(), flag(c, "withServices", false),
                          flag(c, "onlyAvailable", false));
      },
      options(Value{{"withServices", flag_rule()}, {"onlyAvailable", flag_rule()}}));
  service->action(
      "services", [parts](Context& c) { return list_services(parts.registry, c); },
      options(Value{{"onlyLocal", flag_rule()},
                    {"skipInternal", flag_rule()},
                    {"withActions", flag_rule()},
                    {"withEvents", flag_rule()},
                    {"onlyAvailable", flag_rule()},
                    {"grouping", flag_rule(true)}}));
  const Value list_rules{{"onlyLocal", flag_rule()},
                         {"skipInternal", flag_rule()},
                         {"withEndpoints", flag_rule()},
                         {"onlyAvailable", flag_rule()}};
  service->action(
      "actions", [parts](Context& c) { return list_actions(parts.registry, c); }, options(list_rules));
  service->action(
      "events", [parts](Context& c) { return list_events(parts.registry, c); }, options(list_rules));
  service->action(
      "health", [parts](Context&) { return health(parts); }, options(Value()));
  service->action(
      "options", [parts](Context&) { return describe(parts.options); }, options(Value::object()));
  service->action(
      "metrics",
      [](Context&) -> Value { throw ClientError("Metrics feature is disabled", 400, "METRICS_DISABLED"); },
      options(Value::object()));
  return service;
}

}  // namespace weft
