#include "tests/support/sim_mesh.h"

#include <cstdio>
#include <cstdlib>

#include "lib/protocol/serializer.h"
#include "lib/sim/sim_bus_transporter.h"
#include "transporters/memory/memory_transporter.h"
#include "transporters/tcp/tcp_transporter.h"

namespace weft::test {

std::shared_ptr<Service> make_service(std::string name, const std::function<void(Service&)>& describe) {
  auto service = std::make_shared<Service>(std::move(name));
  if (describe) describe(*service);
  return service;
}

SimMesh::SimMesh(Carrier carrier, std::uint64_t seed) : world(seed), carrier_(carrier) {
  if (std::getenv("WEFT_SIM_TRACE") != nullptr) {
    world.set_trace([](std::string_view line) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    });
  }
  if (carrier == Carrier::kBus) bus = std::make_unique<SimBus>(world);
}

SimMesh::~SimMesh() {
  for (auto& [id, node] : nodes_) {
    node.process->kill();
    node.broker.reset();
  }
}

std::unique_ptr<Transporter> SimMesh::make_transporter(SimRuntime& process) {
  switch (carrier_) {
    case Carrier::kMemory:
      return std::make_unique<MemoryTransporter>(process.loop(), memory_);
    case Carrier::kBus:
      return std::make_unique<SimBusTransporter>(process.runtime());
    case Carrier::kTcp:
      return std::make_unique<TcpTransporter>(process.loop(), process.network(), Logger(), TcpOptions{});
  }
  return nullptr;
}

Broker& SimMesh::add(const std::string& id, BrokerOptions options) {
  REQUIRE(!nodes_.contains(id));
  SimHost* host = world.fabric().find_host(id);
  if (host == nullptr) host = &world.fabric().add_host(id);
  Node& node = nodes_[id];
  node.process = std::make_unique<SimRuntime>(world, *host);
  options.node_id = id;
  node.broker =
      std::make_unique<Broker>(node.process->runtime(), std::move(options), make_transporter(*node.process));
  return *node.broker;
}

Broker& SimMesh::operator[](std::string_view id) const {
  const auto found = nodes_.find(id);
  REQUIRE(found != nodes_.end());
  return *found->second.broker;
}

SimRuntime& SimMesh::process(std::string_view id) const {
  const auto found = nodes_.find(id);
  REQUIRE(found != nodes_.end());
  return *found->second.process;
}

void SimMesh::start() {
  std::vector<Task<void>> starting;
  std::size_t open = 0;
  for (auto& [id, node] : nodes_) {
    if (!std::exchange(node.is_new, false)) continue;
    starting.push_back(node.broker->start());
    ++open;
  }
  for (Task<void>& task : starting)
    task.start([](void* count) { --*static_cast<std::size_t*>(count); }, &open);
  REQUIRE(until([&] { return open == 0; }));
  for (Task<void>& task : starting) task.take();
  settle();
}

Broker& SimMesh::start(std::string_view id) {
  const auto found = nodes_.find(id);
  REQUIRE(found != nodes_.end());
  found->second.is_new = false;
  await(found->second.broker->start());
  settle();
  return *found->second.broker;
}

// Until every started broker knows the services of every other one.
void SimMesh::settle() {
  const auto knows_all = [this] {
    for (const auto& [id, node] : nodes_) {
      if (node.is_new || !node.broker->started()) continue;
      for (const auto& [other_id, other] : nodes_) {
        if (other.is_new || !other.broker->started() || &other == &node) continue;
        const Value seen = node_row(id, other_id);
        const Value own = node_row(other_id, other_id);
        if (!seen["available"].boolean_or(false) || seen["instanceID"] != own["instanceID"] ||
            seen["seq"] != own["seq"])
          return false;
      }
    }
    return true;
  };
  REQUIRE(until(knows_all));
}

void SimMesh::crash(std::string_view id) {
  const auto found = nodes_.find(id);
  REQUIRE(found != nodes_.end());
  found->second.process->kill();
  found->second.broker.reset();
  nodes_.erase(found);
}

void SimMesh::stop(std::string_view id) {
  const auto found = nodes_.find(id);
  REQUIRE(found != nodes_.end());
  await(found->second.broker->stop());
  nodes_.erase(found);
}

Value SimMesh::node_row(std::string_view id, std::string_view other) const {
  const Value rows = (*this)[id].node_list();
  for (const Value& row : rows.items()) {
    if (row["id"].str() == other) return row;
  }
  return {};
}

bool SimMesh::sees(std::string_view id, std::string_view other) const {
  const Value row = node_row(id, other);
  return row["available"].boolean_or(false);
}

// ---- ScriptedNode ----

namespace {

SimHost& host_of(SimWorld& world, const std::string& id) {
  SimHost* host = world.fabric().find_host("host-of-" + id);
  return host != nullptr ? *host : world.fabric().add_host("host-of-" + id);
}

}  // namespace

ScriptedNode::ScriptedNode(SimMesh& mesh, std::string id)
    : mesh_(mesh), id_(std::move(id)), process_(mesh.world, host_of(mesh.world, id_)) {
  transporter = mesh.make_transporter(process_);
  bool ready = false;
  transporter->start({.node_id = id_, .name_space = {}}, *this, [&ready](const Result<>& result) {
    REQUIRE(result.ok());
    ready = true;
  });
  REQUIRE(mesh.until([&] { return ready; }));
}

ScriptedNode::~ScriptedNode() {
  process_.kill();
}

void ScriptedNode::send(PacketType type, Value body, std::string_view node) {
  if (!body.contains("ver")) body.set("ver", "5");
  if (!body.contains("sender")) body.set("sender", id_);
  send_text(type, to_json(body), node);
}

void ScriptedNode::send_text(PacketType type, std::string_view text, std::string_view node) {
  Buffer bytes;
  bytes.append(text);
  const Result<> sent =
      node.empty() ? transporter->broadcast(type, bytes.view()) : transporter->send(node, type, bytes.view());
  REQUIRE(sent.ok());
}

void ScriptedNode::announce(int seq, Value services, std::string_view instance) {
  send(PacketType::kInfo, Value{{"services", std::move(services)},
                                {"seq", seq},
                                {"instanceID", instance},
                                {"ipList", arr("10.9.9.9")},
                                {"hostname", "scripted"},
                                {"client", {{"type", "script"}, {"version", "1"}, {"langVersion", "1"}}},
                                {"config", Value::object()},
                                {"metadata", {{"zone", "z"}}}});
}

void ScriptedNode::on_frame(const FrameView& frame) {
  auto body = parse_json(frame.payload);
  REQUIRE(body.ok());
  if (std::as_const(*body)["sender"].str_or({}) == id_) return;
  received.push_back({frame.type, *std::move(body), mesh_.elapsed()});
  if (on_packet) on_packet(Packet(received.back()));
}

std::size_t ScriptedNode::count(PacketType type) const {
  std::size_t found = 0;
  for (const Packet& packet : received) found += packet.type == type ? 1 : 0;
  return found;
}

Value ScriptedNode::last(PacketType type) const {
  for (auto packet = received.rbegin(); packet != received.rend(); ++packet) {
    if (packet->type == type) return packet->body;
  }
  return {};
}

Value service_info(std::string_view name, const std::vector<std::string>& actions,
                   const std::vector<std::string>& events) {
  Value action_map = Value::object();
  for (const std::string& action : actions) {
    const std::string full = std::string(name) + "." + action;
    action_map.set(full, Value{{"name", full}, {"rawName", action}});
  }
  Value event_map = Value::object();
  for (const std::string& event : events) event_map.set(event, Value{{"name", event}});
  return Value{{"name", name},
               {"fullName", name},
               {"settings", Value::object()},
               {"metadata", Value::object()},
               {"actions", action_map},
               {"events", event_map}};
}

}  // namespace weft::test
