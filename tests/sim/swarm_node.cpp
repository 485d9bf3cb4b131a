#include "tests/sim/swarm_node.h"

#include <algorithm>

#include "lib/sim/sim_bus_transporter.h"
#include "tests/sim/swarm.h"
#include "tests/sim/watched_transporter.h"
#include "tests/sim/workload.h"
#include "transporters/memory/memory_transporter.h"
#include "transporters/tcp/tcp_transporter.h"

namespace weft::swarm {

using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kListedPort = 7000;
// After which a node that hangs is given up, with some time to spare.
constexpr Duration kHungMax = std::chrono::seconds(13);

SimHost& host_named(SimWorld& world, const std::string& name) {
  SimHost* host = world.fabric().find_host(name);
  return host != nullptr ? *host : world.fabric().add_host(name);
}

}  // namespace

SwarmNode::SwarmNode(Swarm& swarm, const NodePlan& plan, std::size_t index)
    : swarm_(swarm),
      plan_(plan),
      index_(index),
      host_(host_named(swarm.world, plan.name)),
      services_(plan.services) {
  host_.set_wall_skew(plan.wall_skew);
}

SwarmNode::~SwarmNode() {
  if (process_ != nullptr) process_->kill();
  destroy();
}

bool SwarmNode::offers(std::string_view full_name) const {
  return std::any_of(services_.begin(), services_.end(),
                     [&](const ServicePlan& service) { return service.full_name() == full_name; });
}

std::unique_ptr<Transporter> SwarmNode::make_transporter() {
  switch (swarm_.plan.carrier) {
    case Carrier::kMemory:
      return std::make_unique<MemoryTransporter>(process_->loop(), swarm_.memory);
    case Carrier::kBus:
      return std::make_unique<SimBusTransporter>(process_->runtime());
    case Carrier::kTcp: {
      TcpOptions options;
      if (swarm_.plan.static_list) {
        options.udp_discovery = false;
        options.port = kListedPort;
        options.urls = Value::object();
        for (const NodePlan& node : swarm_.plan.nodes)
          options.urls.set(node.name, node.name + ":" + std::to_string(kListedPort));
      }
      return std::make_unique<TcpTransporter>(process_->loop(), process_->network(), Logger(), options);
    }
  }
  return nullptr;
}

void SwarmNode::start() {
  if (state_ == State::kStopping && is_stopped_) destroy();
  if (state_ != State::kDown || !host_.is_up()) return;
  state_ = State::kStarting;
  life_ = swarm_.journal.begin_life(name());
  view_.clear();
  was_slow_ = false;
  is_stopped_ = false;
  freezes_.clear();
  process_ =
      std::make_unique<SimRuntime>(swarm_.world, host_, SimProcessOptions{.clock_rate = plan_.clock_rate});
  process_->loop().set_blocking_time(3ms);
  process_->system().set_cpu_percent(static_cast<int>(index_ * 13 % 100));
  BrokerOptions options = swarm_.plan.options;
  options.node_id = name();
  options.metadata = Value{{"index", static_cast<std::int64_t>(index_)}};
  options.on_fatal = [this](Broker&, const Error& error) {
    swarm_.verdict.broken("a node keeps its name", name() + ": " + error.message());
  };
  auto wire = std::make_unique<WatchedTransporter>(make_transporter(), [this](std::string_view node,
                                                                              PacketType type) {
    const auto seen = view_.find(node);
    if (seen != view_.end() && seen->second) return;
    swarm_.verdict.broken("nothing is sent to a node known dead",
                          name() + " sends a " + std::string(to_string(type)) + " to " + std::string(node));
  });
  broker_ = std::make_unique<Broker>(process_->runtime(), std::move(options), std::move(wire));
  watch(*broker_);
  for (const ServicePlan& service : services_) broker_->add_service(make_service(swarm_, *this, service));
  starting_ = broker_->start();
  starting_.start([](void* self) { static_cast<SwarmNode*>(self)->on_started(); }, this);
}

void SwarmNode::watch(Broker& broker) {
  listener_ = broker.on_local("$node.*", [this](std::string_view event, const Value& payload) {
    const std::string id(payload["node"]["id"].str_or({}));
    if (event == "$node.connected") {
      view_[id] = true;
      swarm_.journal.node_back(life_, id);
    }
    if (event != "$node.disconnected") return;
    view_[id] = false;
    const SwarmNode* other = swarm_.find(id);
    if (other != nullptr && other->is_up() && is_up() && swarm_.is_calm(*this, *other))
      swarm_.verdict.broken("a healthy node stays", name() + " takes " + id + " out");
    swarm_.journal.node_lost(life_, id);
    swarm_.world.after(kHungMax, [this, id, life = life_] {
      if (life == life_ && process_ != nullptr && !is_frozen() && !was_slow_ && state_ != State::kDown)
        swarm_.journal.check_lost(life, id, kHungMax);
    });
  });
}

void SwarmNode::on_started() {
  try {
    starting_.take();
  } catch (const Exception& failure) {
    if (state_ != State::kStopping) {
      swarm_.verdict.broken("a node starts", name() + ": " + failure.error().to_string());
      on_stopped();
    }
    return;
  }
  up_since_ = swarm_.world.now();
  if (state_ != State::kStarting) return;
  state_ = State::kUp;
  start_traffic(swarm_, *this);
}

void SwarmNode::stop() {
  if (is_frozen() || (state_ != State::kUp && state_ != State::kStarting)) return;
  state_ = State::kStopping;
  stopping_ = broker_->stop();
  stopping_.start([](void* self) { static_cast<SwarmNode*>(self)->on_stopped(); }, this);
}

void SwarmNode::on_stopped() {
  swarm_.journal.check_ended(life_, "after stop()");
  swarm_.journal.end_life(life_);
  is_stopped_ = true;
  // By then what was on the wires has arrived, and workers have come back.
  swarm_.world.after(4s, [this, life = life_] {
    if (life == life_ && is_stopped_) bury();
  });
}

void SwarmNode::bury() {
  if (!starting_.done()) swarm_.verdict.broken("start() ends when the node is stopped", name());
  if (process_->loop().has_events())
    swarm_.verdict.broken("after stop() nothing runs",
                          "the loop of " + name() + " still has something to do");
  if (broker_->pending_requests() > 0)
    swarm_.verdict.broken("tables are empty after stop()", name() + " has pending requests");
  destroy();
}

void SwarmNode::crash() {
  if (state_ == State::kDown) return;
  process_->kill();
  swarm_.journal.end_life(life_);
  destroy();
}

// Coroutines first: what they hold points into the broker.
void SwarmNode::destroy() {
  state_ = State::kDown;
  is_stopped_ = false;
  starting_ = {};
  stopping_ = {};
  listener_ = {};
  broker_.reset();
  process_.reset();
}

void SwarmNode::freeze() {
  if (process_ == nullptr || is_frozen()) return;
  freezes_.push_back({local_now(), kNever});
  process_->freeze();
}

void SwarmNode::thaw() {
  if (!is_frozen()) return;
  freezes_.back().to = local_now();
  process_->thaw();
}

void SwarmNode::set_turn_cost(Duration cost) {
  if (process_ == nullptr) return;
  if (cost > Duration::zero()) was_slow_ = true;
  process_->loop().set_turn_cost(cost);
}

Duration SwarmNode::lateness(Instant since) const {
  Duration late = was_slow_ ? Duration(30s) : Duration::zero();
  for (const Freeze& freeze : freezes_) {
    const Instant to = freeze.to == kNever ? local_now() : freeze.to;
    if (to > since) late += to - std::max(freeze.from, since);
  }
  return late;
}

void SwarmNode::add_service(const ServicePlan& service) {
  if (!is_up() || is_frozen() || offers(service.full_name())) return;
  services_.push_back(service);
  swarm_.changed_at[service.full_name()] = swarm_.world.now();
  broker_->add_service(make_service(swarm_, *this, service));
}

void SwarmNode::remove_service(const std::string& full_name) {
  if (!is_up() || is_frozen() || !offers(full_name)) return;
  std::erase_if(services_, [&](const ServicePlan& service) { return service.full_name() == full_name; });
  swarm_.changed_at[full_name] = swarm_.world.now();
  Broker& broker = *broker_;
  broker.spawn([&broker, full_name]() -> Task<void> { co_await broker.destroy_service(full_name); });
}

}  // namespace weft::swarm
