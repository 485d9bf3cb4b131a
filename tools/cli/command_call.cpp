#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/catalog.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_code.h"

namespace weft::cli {

namespace {

constexpr std::size_t kNamesMax = 12;  // In a message.

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamesMax; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamesMax ? text + ", …" : text;
}

std::string service_of(const std::string& action) {
  const std::size_t dot = action.rfind('.');
  return dot == action.npos ? std::string() : action.substr(0, dot);
}

// Nobody offers the action: says what there is instead.
int tell_not_offered(Session& session) {
  const SendOptions& send = session.line.send;
  const std::string& self = session.mesh.self();
  const Value rows = session.mesh.nodes();
  const auto items = rows.items();
  const bool anyone =
      std::any_of(items.begin(), items.end(), [&](const Value& row) { return is_worker(row, self); });
  if (!anyone) return tell_nobody(session);

  std::string hint;
  if (!send.node.empty()) {
    const bool known = std::any_of(items.begin(), items.end(), [&](const Value& row) {
      return row["id"].str_or({}) == send.node && row["available"].boolean_or(false);
    });
    if (!known) {
      std::vector<std::string> ids;
      for (const Value& row : items) {
        if (is_worker(row, self)) ids.emplace_back(row["id"].str_or({}));
      }
      hint = "There is no node '" + send.node + "'. Nodes: " + listed(ids) + ".";
    } else if (offers(rows, send.name, {}, self)) {
      hint = "Other nodes offer it: `weft actions " + send.name + " --details` shows which.";
    }
  }
  if (hint.empty()) {
    const std::string service = service_of(send.name);
    const std::vector<std::string> actions = action_names(rows, service, self);
    const std::vector<std::string> services = service_names(rows, self);
    std::string near;
    if (!actions.empty()) {
      hint = "Service '" + service + "' has: " + listed(actions) + ".";
      near = nearest(send.name, actions);
    } else if (services.empty()) {
      hint = "No node offers a service.";
    } else {
      hint = "Services: " + listed(services) + ".";
      if (service.empty()) hint += " The name of an action is SERVICE.ACTION.";
      if (const std::string likely = nearest(service, services); !likely.empty()) {
        near = likely + send.name.substr(service.size());
      }
    }
    if (!near.empty()) hint += " Did you mean '" + near + "'?";
  }
  session.output.failure(Error::service_not_found(send.name, send.node), hint);
  return kExitNobody;
}

std::string hint_for(const Error& error) {
  switch (error.error_class()) {
    case ErrorClass::kRequestTimeout:
      return "No answer in time. --timeout SECONDS gives the action longer.";
    case ErrorClass::kServiceNotFound:
    case ErrorClass::kServiceNotAvailable:
      return "`weft actions --details` shows what is offered where.";
    case ErrorClass::kRequestRejected:
      return "--retries N tries again, on another node where there is one.";
    default:
      return {};
  }
}

}  // namespace

Task<int> run_call(Session& session, std::optional<Value> params) {
  const SendOptions& send = session.line.send;
  Mesh& mesh = session.mesh;
  if (send.name.starts_with('$') && send.node.empty()) {
    // Internal actions are served by the node that is asked: here, by the observer, once it knows the mesh.
    const bool found = co_await mesh.settle();
    if (!found) co_return tell_nobody(session);
  } else {
    const auto offered = [&] { return offers(mesh.nodes(), send.name, send.node, mesh.self()); };
    // Its service is there without it: waiting longer does not help.
    const auto hopeless = [&] {
      return send.node.empty() && !action_names(mesh.nodes(), service_of(send.name), mesh.self()).empty();
    };
    const bool there = co_await mesh.until(offered, hopeless);
    if (!there) co_return tell_not_offered(session);
  }

  CallOptions options;
  options.timeout = mesh.time_left();
  options.retries = send.retries;
  options.node = send.node;
  if (!send.meta.is_null()) options.meta = &send.meta;
  if (!send.headers.is_null()) options.headers = &send.headers;
  Params sent = params ? Params(std::move(*params)) : Params();
  TryCall<Value> call = mesh.broker().try_call(send.name, std::move(sent), options);
  Result<Value> outcome = co_await std::move(call);
  if (outcome.ok()) {
    session.output.result(*outcome);
    co_return kExitOk;
  }
  session.output.failure(outcome.error(), hint_for(outcome.error()));
  co_return kExitFailed;
}

}  // namespace weft::cli
