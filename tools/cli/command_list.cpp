#include <string>
#include <string_view>

#include "tools/cli/catalog.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/listings.h"

namespace weft::cli {

namespace {

// The rows to be shown, as `$node.…` gives them.
Task<Value> read_rows(Session& session, const ListFilter& filter) {
  Broker& broker = session.mesh.broker();
  switch (session.line.command) {
    case Command::kServices: {
      const Value rows =
          co_await broker.call("$node.services", {{"withActions", true}, {"withEvents", true}});
      co_return shown_services(rows, filter);
    }
    case Command::kActions: {
      const Value rows = co_await broker.call("$node.actions", {{"withEndpoints", true}});
      co_return shown_endpoints(rows, filter);
    }
    case Command::kEvents: {
      const Value rows = co_await broker.call("$node.events", {{"withEndpoints", true}});
      co_return shown_endpoints(rows, filter);
    }
    default: {
      const Value rows = co_await broker.call("$node.list", {{"withServices", true}});
      co_return shown_nodes(rows, filter);
    }
  }
}

Table table_of(const Session& session, const Value& rows) {
  const bool details = session.line.list.details;
  switch (session.line.command) {
    case Command::kServices:
      return services_table(rows, details);
    case Command::kActions:
      return actions_table(rows, details);
    case Command::kEvents:
      return events_table(rows, details);
    default:
      return nodes_table(rows, session.mesh.self(), details);
  }
}

std::string_view thing(Command command) {
  switch (command) {
    case Command::kServices:
      return "service";
    case Command::kActions:
      return "action";
    case Command::kEvents:
      return "event";
    default:
      return "node";
  }
}

std::string nothing_text(const CommandLine& line) {
  std::string text = "There is no " + std::string(thing(line.command));
  if (!line.list.pattern.empty()) text += " that fits '" + line.list.pattern + "'";
  if (!line.list.node.empty()) text += " on node '" + line.list.node + "'";
  return text + "." + (line.list.all ? "" : " (--all shows what is internal or not available, too.)");
}

}  // namespace

Task<int> run_listing(Session& session) {
  const bool found = co_await session.mesh.settle();
  if (!found) co_return tell_nobody(session);
  const ListOptions& list = session.line.list;
  const ListFilter filter{
      .pattern = list.pattern, .node = list.node, .all = list.all, .self = session.mesh.self()};
  Value rows = co_await read_rows(session, filter);
  if (session.output.json()) {
    if (session.line.command == Command::kNodes && !list.details) {
      for (Value& row : rows.items()) row.erase("services");
    }
    session.output.result(rows);
  } else if (rows.empty()) {
    session.output.note(nothing_text(session.line));
  } else {
    session.output.result(table_of(session, rows));
  }
  co_return kExitOk;
}

}  // namespace weft::cli
