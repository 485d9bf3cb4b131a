#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "lib/loop/when_all.h"
#include "tools/cli/catalog.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_code.h"

namespace weft::cli {

namespace {

struct Answered {
  std::string node;
  std::optional<Pong> pong;
  double round_trip_ms = 0;
};

// Twice: the first ping opens the connection where there is none.
Task<void> ping_one(Broker& broker, Answered& answer, Duration timeout) {
  answer.pong = co_await broker.ping(answer.node, timeout);
  if (!answer.pong) co_return;
  const auto sent = std::chrono::steady_clock::now();
  answer.pong = co_await broker.ping(answer.node, timeout);
  answer.round_trip_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - sent).count();
}

std::string clock_text(double behind_ms) {
  const double ms = std::round(behind_ms);
  if (ms == 0) return "same";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.0f ms %s", std::abs(ms), ms > 0 ? "behind" : "ahead");
  return text.data();
}

std::string ms_text(double ms) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f ms", ms);
  return text.data();
}

void show(Output& output, const std::vector<Answered>& answers) {
  if (output.json()) {
    Value rows = Value::array();
    for (const Answered& answer : answers) {
      Value row{{"nodeID", answer.node}, {"elapsedTime", Value()}, {"timeDiff", Value()}};
      if (answer.pong) {
        row.set("elapsedTime", answer.round_trip_ms);
        row.set("timeDiff", answer.pong->time_diff_ms + 0.0);  // No "-0".
      }
      rows.push_back(std::move(row));
    }
    output.result(rows);
    return;
  }
  Table table;
  table.columns = {{"Node"}, {"Round trip", true}, {"Clock"}};
  for (const Answered& answer : answers) {
    if (answer.pong) {
      table.rows.push_back(
          {answer.node, ms_text(answer.round_trip_ms), clock_text(answer.pong->time_diff_ms)});
    } else {
      table.rows.push_back({answer.node, {"no answer", Paint::kBad}, std::string("-")});
    }
  }
  output.result(table);
}

bool is_available(const Value& rows, const std::string& id) {
  const auto items = rows.items();
  return std::any_of(items.begin(), items.end(), [&](const Value& row) {
    return row["id"].str_or({}) == id && row["available"].boolean_or(false);
  });
}

int tell_unknown(Session& session, const std::string& id) {
  std::string known;
  const Value rows = session.mesh.nodes();
  for (const Value& row : rows.items()) {
    if (is_worker(row, session.mesh.self()))
      known += (known.empty() ? "" : ", ") + std::string(row["id"].str_or({}));
  }
  if (known.empty()) return tell_nobody(session);
  session.output.failure(
      Error(ErrorClass::kServiceNotFound, "There is no node '" + id + "'.", "NODE_NOT_FOUND"),
      "Nodes: " + known + ".");
  return kExitNobody;
}

}  // namespace

Task<int> run_ping(Session& session) {
  Mesh& mesh = session.mesh;
  std::vector<std::string> ids = session.line.ping_nodes;
  const auto never = [] { return false; };
  for (const std::string& id : ids) {
    const auto there = [&] { return is_available(mesh.nodes(), id); };
    const bool found = co_await mesh.until(there, never);
    if (!found) co_return tell_unknown(session, id);
  }
  if (ids.empty()) {
    const bool found = co_await mesh.settle();
    if (!found) co_return tell_nobody(session);
    const Value rows = mesh.nodes();
    for (const Value& row : rows.items()) {
      if (is_worker(row, mesh.self())) ids.emplace_back(row["id"].str_or({}));
    }
    std::sort(ids.begin(), ids.end());
  }

  const Duration left = mesh.time_left();
  const Duration timeout = left == Duration::zero() ? std::chrono::hours(24) : left;
  std::vector<Answered> answers;
  for (std::string& id : ids) answers.push_back({std::move(id), std::nullopt, 0});
  std::vector<Task<void>> pings;
  for (Answered& answer : answers) pings.push_back(ping_one(mesh.broker(), answer, timeout));
  const auto failures = co_await when_all(std::move(pings));
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  show(session.output, answers);
  const bool all =
      std::all_of(answers.begin(), answers.end(), [](const Answered& a) { return a.pong.has_value(); });
  co_return all ? kExitOk : kExitFailed;
}

}  // namespace weft::cli
