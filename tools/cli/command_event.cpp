#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/registry/pattern.h"
#include "tools/cli/catalog.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_code.h"

namespace weft::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration kConfirmMax = 2s;

struct Listeners {
  std::map<std::string, std::set<std::string>> nodes_of_group;
  std::vector<std::string> nodes;
};

// Who gets the event, as the registry knows.
Listeners find_listeners(const Value& event_rows, const SendOptions& send, std::string_view self) {
  Listeners found;
  std::set<std::string> all;
  for (const Value& row : event_rows.items()) {
    const std::string group(row["group"].str_or({}));
    const auto& wanted = send.groups;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), group) == wanted.end()) continue;
    if (!matches_compatible(send.name, row["name"].str_or({}))) continue;
    for (const std::string& node : nodes_of(row, self)) {
      found.nodes_of_group[group].insert(node);
      all.insert(node);
    }
  }
  found.nodes.assign(all.begin(), all.end());
  return found;
}

std::string count_text(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

Value summary(const CommandLine& line, const Listeners& listeners, const std::vector<std::string>& silent) {
  Value groups = Value::object();
  for (const auto& [group, nodes] : listeners.nodes_of_group) {
    groups.set(group, Value(std::vector<std::string>(nodes.begin(), nodes.end())));
  }
  return Value{{"event", line.send.name},
               {"type", line.command == Command::kEmit ? "emit" : "broadcast"},
               {"groups", std::move(groups)},
               {"nodes", Value(listeners.nodes)},
               {"silentNodes", Value(silent)}};
}

std::string sentence(const CommandLine& line, const Listeners& listeners) {
  std::string text = "'" + line.send.name + "' ";
  if (line.command == Command::kBroadcast) {
    text += "sent to " + count_text(listeners.nodes.size(), "node") + ": ";
    for (std::size_t i = 0; i < listeners.nodes.size(); ++i)
      text += (i == 0 ? "" : ", ") + listeners.nodes[i];
    return text + "\n";
  }
  text += "sent to one node of " + count_text(listeners.nodes_of_group.size(), "group") + ": ";
  bool first = true;
  for (const auto& [group, nodes] : listeners.nodes_of_group) {
    text += (first ? "" : ", ") + group + " (" + count_text(nodes.size(), "node") + ")";
    first = false;
  }
  return text + "\n";
}

}  // namespace

Task<int> run_event(Session& session, std::optional<Value> payload) {
  const SendOptions& send = session.line.send;
  Mesh& mesh = session.mesh;
  const bool found = co_await mesh.settle();
  if (!found) co_return tell_nobody(session);
  Broker& broker = mesh.broker();
  const Value rows = co_await broker.call("$node.events", {{"withEndpoints", true}});
  const Listeners listeners = find_listeners(rows, send, mesh.self());

  const std::vector<std::string_view> groups(send.groups.begin(), send.groups.end());
  EventOptions options;
  options.groups = groups;
  if (!send.meta.is_null()) options.meta = &send.meta;
  if (!send.headers.is_null()) options.headers = &send.headers;
  Params sent = payload ? Params(std::move(*payload)) : Params();
  if (session.line.command == Command::kEmit) {
    broker.emit(send.name, std::move(sent), options);
  } else {
    broker.broadcast(send.name, std::move(sent), options);
  }

  // Events are not answered, but a ping that follows one is: then the event has arrived.
  std::vector<std::string> silent;
  if (!listeners.nodes.empty()) {
    const Duration left = mesh.time_left();
    Names names(listeners.nodes);
    const auto pongs = co_await broker.ping_all(
        std::move(names), left == Duration::zero() ? kConfirmMax : std::min(left, kConfirmMax));
    for (const auto& [node, pong] : pongs) {
      if (!pong) silent.push_back(node);
    }
  }
  if (session.output.json()) {
    session.output.result(summary(session.line, listeners, silent));
  } else if (listeners.nodes.empty()) {
    session.output.note("Nobody listens to '" + send.name + "'. `weft events` shows what is listened to.");
  } else {
    session.output.text(sentence(session.line, listeners));
  }
  for (const std::string& node : silent) {
    session.output.note("Node '" + node + "' is silent: it may not have got the event.");
  }
  co_return silent.empty() ? kExitOk : kExitFailed;
}

}  // namespace weft::cli
