#include "tests/chaos/mesh.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace weft::chaos {

using namespace std::chrono_literals;

std::string required(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE_MESSAGE(value != nullptr, name);
  return value;
}

void Sightings::note(Entry entry) {
  entries_.push_back(std::move(entry));
  changed_.notify();
}

std::size_t Sightings::count(std::string_view by, std::string_view node, bool found) const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.by == by && entry.node == node && entry.found == found;
  }));
}

Task<void> Sightings::await(Broker& broker, std::string by, std::string node, bool found,
                            std::size_t before) {
  const Instant deadline = broker.now() + kPatience;
  while (count(by, node, found) <= before) {
    const bool woken = co_await changed_.wait(broker.runtime().loop, deadline);
    REQUIRE_MESSAGE(woken, by, std::string(found ? " has not found " : " has not lost "), node);
  }
}

Mesh::Mesh(Options options) : options_(std::move(options)) {
  AppOptions client;
  client.node_id = "client";
  client.transporter = options_.transporter;
  client.log_level = std::getenv("CHAOS_VERBOSE") != nullptr ? LogLevel::kDebug : LogLevel::kError;
  client.tcp.host = options_.tcp_host;
  client.tcp.use_hostname = false;
  client.tcp.udp_discovery = false;
  if (options_.adapt) options_.adapt(client);
  app_ = std::make_unique<App>(std::move(client));
  auto observer = std::make_shared<Service>("observer");
  const auto note = [this](Context& c, std::string_view by, bool found, const Value& node) {
    sightings_.note({std::string(by), std::string(node.str_or({})), found, c.broker().now()});
  };
  observer->event("seen.*", [note](Context& c) {
    note(c, c.node_id(), c.event() == "seen.found", c.params.value()["node"]);
  });
  observer->event("$node.connected",
                  [note](Context& c) { note(c, "client", true, c.params.value()["node"]["id"]); });
  observer->event("$node.disconnected",
                  [note](Context& c) { note(c, "client", false, c.params.value()["node"]["id"]); });
  app_->add_service(std::move(observer));
  app_->start();
  port_ = app_->call("$node.list")[0]["port"].i64_or(0);
}

Mesh::~Mesh() {
  app_->stop();
}

WorkerProcess::Environment Mesh::environment(const std::string& id) const {
  return {{"NODEID", id},
          {"TRANSPORTER", options_.transporter},
          {"TCP_HOST", options_.tcp_host},
          {"TCP_USE_HOSTNAME", "false"},
          {"UDP_DISCOVERY", "false"},
          {"TCP_URLS", options_.tcp_host + ":" + std::to_string(port_) + "/client"},
          {"LOGLEVEL", "error"}};
}

WorkerProcess Mesh::worker(const std::string& id, const WorkerProcess::Environment& more) const {
  WorkerProcess::Environment all = environment(id);
  all.insert(all.end(), more.begin(), more.end());
  return WorkerProcess({required("TEST_RUNNER"), required("TEST_MODULE")}, all);
}

bool Mesh::has_moleculer() {
  const char* modules = std::getenv("TEST_NODE_MODULES");
  return modules != nullptr &&
         ::access((std::string(modules) + "/node_modules/moleculer").c_str(), R_OK) == 0;
}

WorkerProcess Mesh::moleculer_worker(const std::string& id, const WorkerProcess::Environment& more) const {
  WorkerProcess::Environment all = environment(id);
  all.emplace_back("WEFT_INTEROP_MODULES", required("TEST_NODE_MODULES"));
  all.insert(all.end(), more.begin(), more.end());
  const std::string source = required("TEST_SOURCE");
  return WorkerProcess({"/usr/bin/env", "node", source + "/tests/interop/js/node.js",
                        source + "/tests/chaos/js/chaos.service.js"},
                       all);
}

namespace {

// Waits until `is_so()`, looking again whenever the mesh changes.
Task<void> mesh_is(Broker& broker, std::function<bool()> is_so, std::string what) {
  Signal changed;
  const LocalListener listener =
      broker.on_local("**", [&changed](std::string_view, const Value&) { changed.notify(); });
  const Instant deadline = broker.now() + kPatience;
  while (!is_so()) {
    const bool woken = co_await changed.wait(broker.runtime().loop, deadline);
    REQUIRE_MESSAGE(woken, what);
  }
}

}  // namespace

Task<void> workers_are(Broker& broker, std::size_t count) {
  const auto offering = [&broker] {
    std::size_t nodes = 0;
    const Value list = broker.node_list(true, true);
    for (const Value& node : list.items()) {
      for (const Value& service : node["services"].items()) {
        if (service["name"].str_or({}) == "chaos") ++nodes;
      }
    }
    return nodes;
  };
  co_await mesh_is(
      broker, [&] { return offering() == count; }, "there are not " + std::to_string(count) + " workers");
}

Task<void> node_is(Broker& broker, std::string node, bool available) {
  const auto is_so = [&broker, node, available] {
    const Value list = broker.node_list(false, true);
    const auto items = list.items();
    return available == std::any_of(items.begin(), items.end(),
                                    [&](const Value& row) { return row["id"].str_or({}) == node; });
  };
  co_await mesh_is(broker, is_so, node + (available ? " has not come" : " has not gone"));
}

Task<void> node_sees(Broker& broker, std::string by, std::string node) {
  const Instant deadline = broker.now() + kPatience;
  while (true) {
    CallOptions options;
    options.node = by;
    options.timeout = 5s;
    const Value list = co_await broker.call("$node.list", {{"onlyAvailable", true}}, options);
    for (const Value& row : list.items()) {
      if (row["id"].str_or({}) == node) co_return;
    }
    REQUIRE_MESSAGE(broker.now() < deadline, by, " does not see ", node);
  }
}

Task<int> exit_of(Broker& broker, WorkerProcess& process) {
  Signal changed;
  int code = 0;
  bool ended = false;
  broker.runtime().loop.run_blocking([&] { code = process.wait(); },
                                     [&] {
                                       ended = true;
                                       changed.notify();
                                     });
  while (!ended) (void)co_await changed.wait(broker.runtime().loop);
  co_return code;
}

Load::Load(Broker& broker, LoadOptions options)
    : broker_(broker), options_(std::move(options)), began_(broker.now()) {
  pace();
}

void Load::pace() {
  if (finished_) return;
  const double elapsed_s = to_ms(broker_.now() - began_) / 1000;
  for (const auto due = static_cast<std::uint64_t>(elapsed_s * options_.rate); made_ < due; ++made_) {
    const bool is_long =
        options_.long_every > 0 && made_ % static_cast<std::uint64_t>(options_.long_every) == 0;
    ++in_flight_;
    broker_.spawn([this, ms = is_long ? options_.long_ms : options_.ms] { return one(ms); });
  }
  timer_.set_after(broker_.runtime().loop, 2ms, [this] { pace(); });
}

Task<void> Load::one(std::int64_t ms) {
  const Instant begun = broker_.now();
  CallOptions options;
  options.retries = options_.retries;
  auto answer = co_await broker_.try_call<std::string>(options_.action, {{"ms", ms}}, options);
  const Instant now = broker_.now();
  --in_flight_;
  ++ended_;
  slowest_ = std::max(slowest_, now - begun);
  if (answer) {
    ++served_[*answer];
  } else {
    failures_.push_back({answer.error(), begun, now});
  }
  progress_.notify();
}

Task<void> Load::more(std::uint64_t count) {
  const std::uint64_t goal = ended_ + count;
  const Instant deadline = broker_.now() + kPatience;
  while (ended_ < goal) {
    const bool woken = co_await progress_.wait(broker_.runtime().loop, deadline);
    REQUIRE_MESSAGE(woken, "the calls stand still");
  }
}

Task<double> Load::finish() {
  const double rate = static_cast<double>(made_) * 1000 / std::max(to_ms(broker_.now() - began_), 1.0);
  finished_ = true;
  timer_.cancel();
  const Instant deadline = broker_.now() + kPatience;
  while (in_flight_ > 0) {
    const bool woken = co_await progress_.wait(broker_.runtime().loop, deadline);
    REQUIRE_MESSAGE(woken, in_flight_, " calls never end");
  }
  co_return rate;
}

}  // namespace weft::chaos
