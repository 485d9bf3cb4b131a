#include "tools/cli/catalog.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "broker/registry/pattern.h"
#include "tools/cli/text.h"

namespace weft::cli {

namespace {

bool is_internal(std::string_view name) {
  return name.starts_with('$');
}

bool is_observer(const Value& node_row) {
  return node_row["metadata"]["observer"].boolean_or(false);
}

template <typename Key>
Value sorted(std::vector<Value> rows, Key key) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Value& a, const Value& b) { return key(a) < key(b); });
  return Value(std::move(rows));
}

bool wanted(std::string_view name, bool available, const ListFilter& filter) {
  if (!filter.all && (is_internal(name) || !available)) return false;
  return fits(name, filter.pattern);
}

}  // namespace

bool fits(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return true;
  if (pattern.find_first_of("*?") == pattern.npos) return name.find(pattern) != name.npos;
  return matches_strict(name, pattern);
}

bool is_worker(const Value& node_row, std::string_view self) {
  return node_row["available"].boolean_or(false) && node_row["id"].str_or({}) != self &&
         !is_observer(node_row);
}

namespace {

template <typename Use>
void each_service(const Value& rows, std::string_view self, Use use) {
  for (const Value& row : rows.items()) {
    if (!row["available"].boolean_or(false) || row["id"].str_or({}) == self) continue;
    for (const Value& service : row["services"].items()) use(row, service);
  }
}

std::string_view full_name(const Value& service) {
  return service["fullName"].str_or(service["name"].str_or({}));
}

std::vector<std::string> in_order(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

bool offers(const Value& rows, std::string_view action, std::string_view node, std::string_view self) {
  bool found = false;
  each_service(rows, self, [&](const Value& row, const Value& service) {
    if (!node.empty() && row["id"].str_or({}) != node) return;
    found = found || service["actions"].contains(action);
  });
  return found;
}

std::vector<std::string> service_names(const Value& rows, std::string_view self) {
  std::vector<std::string> names;
  each_service(rows, self, [&](const Value&, const Value& service) {
    if (!is_internal(full_name(service))) names.emplace_back(full_name(service));
  });
  return in_order(std::move(names));
}

std::vector<std::string> action_names(const Value& rows, std::string_view service_name,
                                      std::string_view self) {
  std::vector<std::string> names;
  each_service(rows, self, [&](const Value&, const Value& service) {
    if (full_name(service) != service_name) return;
    for (const Member& action : service["actions"].members()) names.push_back(action.key);
  });
  return in_order(std::move(names));
}

Value shown_nodes(const Value& rows, const ListFilter& filter) {
  std::vector<Value> shown;
  for (const Value& row : rows.items()) {
    const std::string_view id = row["id"].str_or({});
    if (!filter.all && !is_worker(row, filter.self)) continue;
    if (!filter.node.empty() && id != filter.node) continue;
    if (fits(id, filter.pattern)) shown.push_back(row);
  }
  return sorted(std::move(shown), [](const Value& row) { return row["id"].str_or({}); });
}

Value shown_services(const Value& rows, const ListFilter& filter) {
  std::vector<Value> shown;
  for (const Value& row : rows.items()) {
    const std::string_view name = row["fullName"].str_or({});
    if (!wanted(name, row["available"].boolean_or(false), filter)) continue;
    Value nodes = Value::array();
    bool is_there = filter.node.empty();
    for (const Value& node : row["nodes"].items()) {
      if (node.str_or({}) == filter.self) continue;
      is_there = is_there || node.str_or({}) == filter.node;
      nodes.push_back(node);
    }
    if (!is_there || nodes.empty()) continue;
    Value copy = row;
    copy.set("local", false);
    copy.set("nodes", std::move(nodes));
    shown.push_back(std::move(copy));
  }
  return sorted(std::move(shown), [](const Value& row) { return row["fullName"].str_or({}); });
}

Value shown_endpoints(const Value& rows, const ListFilter& filter) {
  std::vector<Value> shown;
  for (const Value& row : rows.items()) {
    if (!wanted(row["name"].str_or({}), row["available"].boolean_or(false), filter)) continue;
    Value endpoints = Value::array();
    bool is_there = filter.node.empty();
    for (const Value& endpoint : row["endpoints"].items()) {
      const std::string_view node = endpoint["nodeID"].str_or({});
      if (node == filter.self) continue;
      is_there = is_there || node == filter.node;
      endpoints.push_back(endpoint);
    }
    // A list without endpoints is of an action that somebody offered once.
    const bool is_gone = row["endpoints"].empty();
    if (!is_there || (endpoints.empty() && !(filter.all && is_gone))) continue;
    Value copy = row;
    copy.set("hasLocal", false);
    copy.set("count", endpoints.size());
    copy.set("endpoints", std::move(endpoints));
    shown.push_back(std::move(copy));
  }
  return sorted(std::move(shown), [](const Value& row) {
    return std::make_pair(row["name"].str_or({}), row["group"].str_or({}));
  });
}

std::vector<std::string> nodes_of(const Value& row, std::string_view self) {
  std::vector<std::string> ids;
  for (const Value& endpoint : row["endpoints"].items()) {
    const std::string_view node = endpoint["nodeID"].str_or({});
    if (node != self && endpoint["available"].boolean_or(false)) ids.emplace_back(node);
  }
  return ids;
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(2, name.size() / 4) + 1;
  for (const std::string& candidate : names) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    best = &candidate;
  }
  return best == nullptr ? std::string() : *best;
}

}  // namespace weft::cli
