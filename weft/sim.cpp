#include "weft/sim.h"

#include <algorithm>

#include "lib/sim/sim_bus_transporter.h"
#include "transporters/memory/memory_transporter.h"
#include "transporters/tcp/tcp_transporter.h"

namespace weft::sim {

struct Cluster::Buses {
  std::unique_ptr<SimBus> bus;  // Null with other carriers.
  std::shared_ptr<MemoryBus> memory = std::make_shared<MemoryBus>();
};

Node& Node::offer(std::string name, std::function<void(Service&)> describe) {
  factories_.push_back([name = std::move(name), describe = std::move(describe)] {
    auto service = std::make_shared<Service>(name);
    if (describe) describe(*service);
    return service;
  });
  return *this;
}

void Node::require_running() const {
  if (broker_ == nullptr) Error(ErrorClass::kBase, "The node '" + name_ + "' does not run.", "SIM").raise();
}

Broker& Node::broker() const {
  require_running();
  return *broker_;
}

SimRuntime& Node::process() const {
  require_running();
  return *process_;
}

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)), world_(options_.seed), buses_(std::make_unique<Buses>()) {
  if (options_.trace) world_.set_trace([this](std::string_view line) { options_.trace(line); });
  if (options_.carrier == Carrier::kBus) buses_->bus = std::make_unique<SimBus>(world_);
}

Cluster::~Cluster() {
  for (const auto& [name, node] : nodes_) {
    if (node->process_ != nullptr) node->process_->kill();
    end(*node);
  }
}

void Cluster::refuse(const std::string& what) const {
  Error(ErrorClass::kBase, "Simulation with seed " + std::to_string(options_.seed) + ": " + what + ".", "SIM")
      .raise();
}

std::unique_ptr<Transporter> Cluster::make_transporter(SimRuntime& process) {
  switch (options_.carrier) {
    case Carrier::kBus:
      return std::make_unique<SimBusTransporter>(process.runtime());
    case Carrier::kTcp:
      return std::make_unique<TcpTransporter>(process.loop(), process.network(), Logger(), TcpOptions{});
    case Carrier::kMemory:
      return std::make_unique<MemoryTransporter>(process.loop(), buses_->memory);
  }
  return nullptr;
}

Node& Cluster::add(const std::string& name) {
  if (nodes_.contains(name)) refuse("there are two nodes '" + name + "'");
  BrokerOptions options = options_.broker;
  options.node_id = name;
  std::unique_ptr<Node> node(new Node(name, std::move(options), world_.fabric().add_host(name)));
  return *nodes_.emplace(name, std::move(node)).first->second;
}

Node& Cluster::node(std::string_view name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) refuse("there is no node '" + std::string(name) + "'");
  return *found->second;
}

Task<void> Cluster::begin(Node& node) {
  node.process_ = std::make_unique<SimRuntime>(world_, node.host_);
  node.broker_ =
      std::make_unique<Broker>(node.process_->runtime(), node.options_, make_transporter(*node.process_));
  for (const auto& make : node.factories_) node.broker_->add_service(make());
  return node.broker_->start();
}

void Cluster::end(Node& node) {
  node.broker_.reset();
  node.process_.reset();
}

void Cluster::start() {
  std::vector<Task<void>> starting;
  for (const auto& [name, node] : nodes_) {
    if (!node->is_running()) starting.push_back(begin(*node));
  }
  std::size_t open = starting.size();
  for (Task<void>& task : starting)
    task.start([](void* count) { --*static_cast<std::size_t*>(count); }, &open);
  if (!until([&open] { return open == 0; })) refuse("the nodes did not start in time");
  for (Task<void>& task : starting) task.take();
  settle();
}

void Cluster::start(std::string_view name) {
  Node& one = node(name);
  if (one.is_running()) refuse("the node '" + one.name() + "' runs already");
  await(begin(one));
  settle();
}

void Cluster::stop(std::string_view name) {
  Node& one = node(name);
  await(one.broker().stop());
  end(one);
}

void Cluster::crash(std::string_view name) {
  Node& one = node(name);
  if (!one.is_running()) return;
  one.process_->kill();
  end(one);
}

std::string Cluster::why_unsettled() const {
  for (const auto& [name, node] : nodes_) {
    if (!node->is_running()) continue;
    const Value seen_rows = node->broker_->node_list();
    std::map<std::string_view, const Value*> seen;
    for (const Value& row : seen_rows.items()) seen.emplace(row["id"].str(), &row);
    for (const auto& [other_name, other] : nodes_) {
      if (!other->is_running() || other == node) continue;
      const Value own_rows = other->broker_->node_list();
      const Value& own = own_rows.items().front();  // Its own row comes first.
      const auto row = seen.find(other_name);
      if (row == seen.end() || !(*row->second)["available"].boolean_or(false))
        return name + " does not see " + other_name;
      if ((*row->second)["instanceID"] != own["instanceID"] || (*row->second)["seq"] != own["seq"])
        return name + " has old news of " + other_name;
    }
  }
  return {};
}

void Cluster::settle() {
  // Asked now and then: with many nodes it is a long question.
  const Instant limit = world_.now() + options_.patience;
  for (std::string why = why_unsettled(); !why.empty(); why = why_unsettled()) {
    if (world_.now() >= limit) refuse("the nodes did not come to know each other in time: " + why);
    world_.run_for(std::chrono::milliseconds(5));
  }
}

std::vector<SimHost*> Cluster::hosts(const Names& names) const {
  std::vector<SimHost*> found;
  for (const std::string& name : names) found.push_back(&host(name));
  return found;
}

void Cluster::partition(const Names& group) {
  const std::vector<SimHost*> inside = hosts(group);
  std::vector<SimHost*> outside;
  for (std::size_t i = 0; i < fabric().host_count(); ++i) {
    SimHost* one = &fabric().host(i);
    if (std::find(inside.begin(), inside.end(), one) == inside.end()) outside.push_back(one);
  }
  fabric().partition(inside, outside);
}

void Cluster::partition(const Names& group, const Names& others) {
  fabric().partition(hosts(group), hosts(others));
}

void Cluster::cut(std::string_view from, std::string_view to) {
  fabric().cut_one_way(hosts({std::string(from)}), hosts({std::string(to)}));
}

void Cluster::heal() {
  fabric().heal_all();
}

void Cluster::set_link(const Link& link) {
  fabric().set_link(link);
}

void Cluster::set_link(std::string_view from, std::string_view to, const Link& link) {
  fabric().set_link(host(from), host(to), link);
}

void Cluster::reset(std::string_view a, std::string_view b) {
  fabric().reset_streams(host(a), host(b));
}

void Cluster::stop_bus() {
  if (buses_->bus == nullptr) refuse("there is no bus");
  buses_->bus->stop();
}

void Cluster::start_bus() {
  if (buses_->bus == nullptr) refuse("there is no bus");
  buses_->bus->start();
}

bool Cluster::until(FunctionRef<bool()> condition) {
  return condition() || world_.run_until(condition, options_.patience);
}

bool Cluster::sees(std::string_view name, std::string_view other) const {
  const Value rows = (*this)[name].node_list();
  for (const Value& row : rows.items()) {
    if (row["id"].str() == other) return row["available"].boolean_or(false);
  }
  return false;
}

void Cluster::record(const std::string& pattern) {
  const auto found = nodes_.find("recorder");
  Node& recorder = found != nodes_.end() ? *found->second : add("recorder");
  // A service for each pattern, each a group of its own, so that every emit comes to it.
  recorder.offer("recorder-" + std::to_string(recorder.factories_.size()), [this, pattern](Service& service) {
    service.event(pattern, [this](Context& context) {
      recorded_.push_back(
          {elapsed(), std::string(context.event()), std::string(context.node_id()), context.params.value()});
    });
  });
}

std::size_t Cluster::count(std::string_view event) const {
  return static_cast<std::size_t>(std::count_if(recorded_.begin(), recorded_.end(),
                                                [&](const RecordedEvent& one) { return one.name == event; }));
}

}  // namespace weft::sim
