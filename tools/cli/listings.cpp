#include "tools/cli/listings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/protocol/serializer.h"

namespace weft::cli {

namespace {

std::string text_of(const Value& value) {
  if (value.is_null()) return {};
  return value.is_string() ? std::string(value.str()) : to_json(value);
}

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

Cell state_cell(bool good, std::string_view good_word, std::string_view bad_word) {
  return {std::string(good ? good_word : bad_word), good ? Paint::kGood : Paint::kBad};
}

// "name", "name?" when it may be left out; with its type behind a colon in details.
std::string param_text(const Member& param, bool details) {
  const Value& rule = param.value;
  std::string type;
  bool optional = false;
  if (rule.is_string()) {  // "number|optional|min:1"
    const std::string_view words = rule.str();
    type = words.substr(0, words.find('|'));
    optional = words.find("|optional") != words.npos;
  } else if (rule.is_object()) {
    type = text_of(rule["type"]);
    optional = rule["optional"].boolean_or(false) || !rule["default"].is_null();
  } else if (rule.is_array()) {  // One of several rules.
    for (const Value& one : rule.items()) {
      if (!type.empty()) type += '|';
      type += one.is_object() ? text_of(one["type"]) : text_of(one);
    }
  }
  return param.key + (optional ? "?" : "") + (details && !type.empty() ? ": " + type : "");
}

std::string params_text(const Value& params, bool details) {
  std::string list;
  for (const Member& param : params.members()) {
    if (!param.key.starts_with('$')) append(list, param_text(param, details));  // "$$strict" and its kin.
  }
  return or_dash(list);
}

std::string names_of(const Value& object, std::string_view prefix) {
  std::string list;
  for (const Member& member : object.members()) {
    std::string_view name = member.key;
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    append(list, name);
  }
  return or_dash(list);
}

std::string node_names(const Value& endpoints) {
  std::string list;
  for (const Value& endpoint : endpoints.items()) append(list, endpoint["nodeID"].str_or({}));
  return or_dash(list);
}

std::string offered_services(const Value& row, bool details) {
  std::string list;
  std::size_t count = 0;
  for (const Value& service : row["services"].items()) {
    const std::string_view name = service["fullName"].str_or(service["name"].str_or({}));
    if (name.starts_with('$')) continue;
    ++count;
    append(list, name);
  }
  return details ? or_dash(list) : std::to_string(count);
}

std::string client_text(const Value& client) {
  std::string text = text_of(client["type"]);
  if (const std::string version = text_of(client["version"]); !version.empty()) text += " " + version;
  return or_dash(text);
}

std::string address_text(const Value& row) {
  std::string address;
  const auto ips = row["ipList"].items();
  if (!ips.empty()) address = text_of(ips.front());
  if (address.empty()) address = text_of(row["udpAddress"]);
  if (!address.empty() && row["port"].is_number()) address += ":" + text_of(row["port"]);
  return or_dash(address);
}

}  // namespace

Table nodes_table(const Value& rows, std::string_view self, bool details) {
  const bool with_metadata =
      details || std::any_of(rows.items().begin(), rows.items().end(),
                             [](const Value& row) { return !row["metadata"].empty(); });
  Table table;
  table.columns = {{"Node"}, {"State"}, {"Services", !details}, {"Client"}, {"Address"}, {"CPU", true}};
  if (details) table.columns.insert(table.columns.end(), {{"Host"}, {"Seq", true}});
  if (with_metadata) table.columns.push_back({"Metadata"});
  for (const Value& row : rows.items()) {
    const std::string id = text_of(row["id"]);
    std::vector<Cell> cells = {{id == self ? id + " (this)" : id},
                               state_cell(row["available"].boolean_or(false), "online", "offline"),
                               offered_services(row, details),
                               client_text(row["client"]),
                               address_text(row),
                               row["cpu"].is_number() ? text_of(row["cpu"]) + " %" : std::string("-")};
    if (details) {
      cells.emplace_back(or_dash(text_of(row["hostname"])));
      cells.emplace_back(text_of(row["seq"]));
    }
    if (with_metadata) cells.emplace_back(row["metadata"].empty() ? "-" : to_json(row["metadata"]));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table services_table(const Value& rows, bool details) {
  Table table;
  table.columns = {{"Service"}, {"State"}, {"Actions", !details}, {"Events", !details}, {"Nodes", !details}};
  for (const Value& row : rows.items()) {
    const std::string name = text_of(row["fullName"]);
    std::string nodes;
    for (const Value& node : row["nodes"].items()) append(nodes, node.str_or({}));
    const auto counted = [details](std::string names, const Value& list) {
      return Cell(details ? std::move(names) : std::to_string(list.size()));
    };
    table.rows.push_back({{name, Paint::kStrong},
                          state_cell(row["available"].boolean_or(false), "ok", "not available"),
                          counted(names_of(row["actions"], name + "."), row["actions"]),
                          counted(names_of(row["events"], {}), row["events"]),
                          counted(std::move(nodes), row["nodes"])});
  }
  return table;
}

namespace {

Cell endpoints_cell(const Value& row, bool details) {
  return {details ? node_names(row["endpoints"]) : std::to_string(row["endpoints"].size())};
}

}  // namespace

Table actions_table(const Value& rows, bool details) {
  Table table;
  table.columns = {{"Action"}, {"State"}, {"Nodes", !details}, {"Params"}};
  if (details) table.columns.push_back({"Description"});
  for (const Value& row : rows.items()) {
    table.rows.push_back({{text_of(row["name"]), Paint::kStrong},
                          state_cell(row["available"].boolean_or(false), "ok", "not available"),
                          endpoints_cell(row, details),
                          params_text(row["action"]["params"], details)});
    if (details) table.rows.back().emplace_back(or_dash(text_of(row["action"]["description"])));
  }
  return table;
}

Table events_table(const Value& rows, bool details) {
  Table table;
  table.columns = {{"Event"}, {"Group"}, {"State"}, {"Nodes", !details}};
  for (const Value& row : rows.items()) {
    table.rows.push_back({{text_of(row["name"]), Paint::kStrong},
                          {text_of(row["group"])},
                          state_cell(row["available"].boolean_or(false), "ok", "not available"),
                          endpoints_cell(row, details)});
  }
  return table;
}

}  // namespace weft::cli
