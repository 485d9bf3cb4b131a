#include "broker/core.h"

#include <algorithm>

#include "broker/discovery/bus_discovery.h"
#include "broker/discovery/gossip_discovery.h"
#include "broker/node_id.h"
#include "broker/services/node_service.h"
#include "broker/strategy/latency.h"
#include "lib/base/config.h"
#include "lib/net/own_host.h"

namespace weft {

namespace {

// A node that is this young and hears of another one under its own name is the newcomer of the two.
constexpr Duration kJoinGrace = std::chrono::seconds(3);
// Over TCP: how long a namesake that gives up may still be heard of, and between two words about one.
constexpr Duration kNamesakeGoes = std::chrono::milliseconds(500);
constexpr Duration kNamesakePause = std::chrono::seconds(10);
// Between the word to handlers that nobody waits any more, and their end.
constexpr Duration kLastMoment = std::chrono::milliseconds(50);
// Of pings whose answer is a sign of life and nothing else.
constexpr std::string_view kProbeId = "probe";
constexpr std::size_t kSuspectsMax = 16;  // That one packet may name.
// Some round trips of a bus.
constexpr Duration kListenFirst = std::chrono::milliseconds(50);

BrokerOptions completed(const Runtime& runtime, BrokerOptions options) {
  if (options.node_id.empty())
    options.node_id = default_node_id(runtime.network.hostname(), runtime.system.process_id());
  if (options.metadata.is_null()) options.metadata = Value::object();
  if (auto valid = validate(options); !valid) valid.error().raise();
  return options;
}

void fill_self(Node& self, const Runtime& runtime, const BrokerOptions& options) {
  self.metadata = options.metadata;
  self.hostname = runtime.network.hostname();
  self.client = Value{{"type", "weft"}, {"version", WEFT_VERSION}, {"langVersion", "C++20"}};
  self.config = Value::object();
  std::vector<std::string> loopback;
  for (const InterfaceAddress& address : runtime.network.interfaces()) {
    if (!address.is_ipv4) continue;
    auto& list = address.is_loopback ? loopback : self.ip_list;
    list.push_back(address.address);
  }
  if (self.ip_list.empty()) self.ip_list = loopback;
}

}  // namespace

BrokerCore::BrokerCore(Broker& broker, const Runtime& world, BrokerOptions given,
                       std::unique_ptr<Transporter> carrier)
    : runtime(world),
      options(completed(world, std::move(given))),
      log(world.log, options.node_id, "broker", options.log_level),
      nodes(options.node_id, make_uuid(world.random)),
      transporter(std::move(carrier)),
      broker_(broker) {
  offer_latency_strategy();
  for (const auto& [name, factory] : options.strategies) strategies.add(name, factory);
  const auto refuse = [](std::string_view option, const Error& why) {
    Error::broker_options("Option '" + std::string(option) + "': " + why.message(), why.data()).raise();
  };
  if (auto made =
          strategies.make(options.registry.strategy, options.registry.strategy_options, runtime.random);
      !made) {
    refuse("registry.strategy", made.error());
  }
  auto made = make_serializer(options.serializer);
  if (!made) refuse("serializer", made.error());
  serializer = std::move(*made);
  if (options.disable_balancer && transporter != nullptr && !transporter->traits().can_balance) {
    log.warn("Option 'disable_balancer' is ignored: the transporter ", transporter->traits().name,
             " does not balance.");
    options.disable_balancer = false;
  }
  fill_self(nodes.self(), runtime, options);
  nodes.set_info_bytes_max(options.registry.catalog_bytes_max);

  registry = std::make_unique<Registry>(
      nodes,
      RegistryConfig{.strategy = options.registry.strategy,
                     .strategy_options = options.registry.strategy_options,
                     .prefer_local = options.registry.prefer_local,
                     .services_per_node_max = options.registry.services_per_node_max,
                     .actions_per_service_max = options.registry.actions_per_service_max,
                     .guards = {options.circuit_breaker, options.outlier},
                     .retry = options.retry},
      strategies, runtime.random, log.with_module("registry"));
  dispatcher = std::make_unique<Dispatcher>(broker_, runtime.loop, log, options.node_id);
  membership = std::make_unique<Membership>(runtime.loop, *registry, options.registry.nodes_max, *this,
                                            log.with_module("registry"));
  if (transporter != nullptr) {
    transit = std::make_unique<Transit>(
        Transit::Config{.node_id = options.node_id,
                        .name_space = options.name_space,
                        .instance_id = nodes.self().instance_id,
                        .disable_version_check = options.transit.disable_version_check},
        runtime.loop, *transporter, *serializer, *this, log.with_module("transit"));
    pinger = std::make_unique<Pinger>(runtime.loop, *transit);
    server = std::make_unique<RequestServer>(
        RequestServer::Parts{broker_, runtime.loop, *registry, *dispatcher, *transit, *serializer, served,
                             options.send_stack, options.request_timeout, log, &repeats});
    if (transporter->traits().is_bus) {
      discovery = std::make_unique<BusDiscovery>(BusDiscovery::Parts{
          runtime.loop, runtime.system, runtime.random, *membership, *transit, options.heartbeat});
    } else {
      discovery = std::make_unique<GossipDiscovery>(GossipDiscovery::Parts{
          runtime.loop, runtime.system, runtime.random, *membership, *transit, *transit, options.gossip, true,
          options.registry.nodes_max, log.with_module("gossip"),
          [this](const Node& node) { return prober->heard_lately(node, runtime.loop.now()); }});
    }
  }
  if (transit != nullptr) prober = std::make_unique<Prober>(nodes, ProbeSettings{});
  if (transit != nullptr && transporter->traits().is_bus) {
    canary = std::make_unique<Canary>(runtime.loop, [this](std::string_view node) { transit->probe(node); });
  }
  calls = std::make_unique<CallEngine>(CallEngine::Parts{
      .broker = broker_,
      .loop = runtime.loop,
      .random = runtime.random,
      .registry = *registry,
      .dispatcher = *dispatcher,
      .sender = transit.get(),
      .options = options,
      .log = log,
      .canary = canary.get(),
      .prober = prober.get(),
      .repeats = &repeats,
      .publish = [this](std::string_view event, Value payload) { publish(event, std::move(payload)); }});
  events = std::make_unique<EventEngine>(
      EventEngine::Parts{broker_, runtime.loop, *registry, *dispatcher, transit.get(), *local_bus, served,
                         serializer.get(), options.disable_balancer, log, [this](const Error& error) {
                           publish("$broker.error", Value{{"error", error.to_string()},
                                                          {"module", "broker"},
                                                          {"type", "eventRefused"},
                                                          {"code", error.code()},
                                                          {"data", error.data()}});
                         }});
  host = std::make_unique<ServiceHost>(ServiceHost::Parts{
      .broker = broker_,
      .loop = runtime.loop,
      .registry = *registry,
      .registry_changed = registry_changed,
      .on_local_changed = [this] { on_local_services_changed(); },
      .on_error =
          [this](const Error& error, std::string_view type) {
            publish("$broker.error",
                    Value{{"error", error.to_string()}, {"module", "broker"}, {"type", type}});
          },
      .spawn = [this](UniqueFunction<Task<void>()> work) { spawn(std::move(work)); },
      .dependency_timeout = options.dependency_timeout,
      .log = log,
      .bulkhead = options.bulkhead});
}

BrokerCore::~BrokerCore() {
  // Coroutines first: what they hold points into the engines. They may spawn as they go.
  stopping_ = {};
  for (auto spawned = std::exchange(spawned_, {}); !spawned.empty(); spawned = std::exchange(spawned_, {}))
    spawned.clear();
  dispatcher->abandon_all();
}

void BrokerCore::publish(std::string_view event, Value payload) {
  broker_.broadcast_local(event, Params(std::move(payload)));
}

// The first Latency strategy that is made, for whatever action, starts the measuring.
void BrokerCore::offer_latency_strategy() {
  strategies.add("Latency", [this](const StrategyContext& context) -> Result<std::unique_ptr<Strategy>> {
    const auto read = read_latency_options(context.options);
    if (!read) return read.error();
    if (latency == nullptr) {
      latency = std::make_unique<LatencyMonitor>(
          nodes,
          LatencySettings{.collect_count = (*read).collect_count, .ping_interval = (*read).ping_interval},
          runtime.random, runtime.loop.now());
      latency_timer_.set(runtime.loop, latency->next_tick(), [this] { measure_latency(); });
    }
    return std::unique_ptr<Strategy>(std::make_unique<LatencyStrategy>(*read, context.random));
  });
}

void BrokerCore::measure_latency() {
  const std::vector<std::string> due = latency->tick(runtime.loop.now());
  latency_timer_.set(runtime.loop, latency->next_tick(), [this] { measure_latency(); });
  if (pinger == nullptr || !transit->connected()) return;
  for (const std::string& node : due) pinger->probe(node, make_uuid(runtime.random));
}

void BrokerCore::start_probing() {
  prober->start(runtime.loop.now());
  probe_timer_.set(runtime.loop, prober->next_tick(), [this] { probe(); });
}

void BrokerCore::probe() {
  const Instant now = runtime.loop.now();
  prober->tick(now);
  const Prober::Output output = prober->take_output();
  probe_timer_.set(runtime.loop, prober->next_tick(), [this] { probe(); });
  for (const std::string& node : output.ping) {
    (void)transit->send_control(PacketType::kPing, node,
                                Value{{"id", kProbeId}, {"time", runtime.loop.wall_ms()}});
  }
  discovery->tell_suspects(output.suspected);
  for (const std::string& id : output.hung) {
    const Node* node = nodes.find(id);
    if (node == nullptr || !node->available) continue;
    log.warn("Node '", id, "' does not answer: it is out of rotation until it does.");
    prober->on_hung(*node, now);
    discovery->on_node_hung(id);
  }
  for (const std::string& id : output.lost) {
    if (const Node* node = nodes.find(id)) give_up_on(*node);
  }
}

// ---- start and stop ----

namespace {

Error stopped_error() {
  return Error(ErrorClass::kBrokerDisconnected, "The broker has been stopped.");
}

}  // namespace

template <typename Hook>
void BrokerCore::run_hook(std::string_view what, Hook&& hook) {
  try {
    hook();
  } catch (...) {
    log.error("The hook '", what, "' failed: ", Error::from_exception(std::current_exception()).to_string());
  }
}

Task<void> BrokerCore::next_turn() {
  post([this] { turn_.notify(); });
  (void)co_await turn_.wait(runtime.loop);
}

Task<void> BrokerCore::connect() {
  if (transit == nullptr) co_return;
  const bool is_bus = transporter->traits().is_bus;
  if (is_bus) transit->hold_requests();
  transit_started_ = true;
  transit->start([this](Result<> result) {
    connect_result_ = std::move(result);
    connected_.notify();
  });
  while (!connect_result_ && !is_ending()) (void)co_await connected_.wait(runtime.loop);
  if (is_ending()) stopped_error().raise();
  if (!*connect_result_) connect_result_->error().raise();
  discovery->start();
  start_probing();
  if (is_bus) {
    // Hear who is there before saying who we are: whoever starts us finds the others, and a node whose id we
    // have taken by mistake is not disturbed.
    co_await broker_.sleep(kListenFirst);
    if (is_ending()) stopped_error().raise();
  }
  publish("$transporter.connected", Value{{"wasReconnect", false}});
}

Task<void> BrokerCore::start() {
  if (phase_ != Phase::kNew) {
    Error(ErrorClass::kBase, "A broker is started once; make a new one to start again.", "ALREADY_STARTED")
        .raise();
  }
  phase_ = Phase::kStarting;
  log.info("weft ", WEFT_VERSION, ", node '", options.node_id, "', namespace '", options.name_space,
           "', transporter ", transporter != nullptr ? transporter->traits().name : "none", ", serializer ",
           serializer->name(), ".");
  std::exception_ptr failure;
  try {
    co_await connect();
    co_await host->start_all();
    if (is_ending()) stopped_error().raise();
    phase_ = Phase::kRunning;
    started = true;
    if (discovery != nullptr) announce_now();
    publish("$broker.started", Value());
    if (options.started) options.started(broker_);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    co_await stop();  // Nothing is left half open.
    std::rethrow_exception(failure);
  }
  log.info("Node '", options.node_id, "' with ", registry->services().size(), " service(s) started.");
}

Task<void> BrokerCore::drain(Instant deadline) {
  const auto wake = [this] { runtime.loop.defer(life_.guard([this] { idle_.notify(); })); };
  while (dispatcher->active() + calls->active_calls() > 0) {
    if (dispatcher->active() > 0) dispatcher->when_idle(wake);
    if (calls->active_calls() > 0) calls->when_idle(wake);
    const bool woken = co_await idle_.wait(runtime.loop, deadline);
    if (woken) continue;
    log.warn("Stopping with ", dispatcher->active(), " handler(s) (", dispatcher->describe(), ") and ",
             calls->active_calls(), " call(s) still running: they did not end within ",
             to_ms(options.tracking.shutdown_timeout), " ms.");
    co_return;
  }
}

Task<void> BrokerCore::stop() {
  if (!is_ending()) {
    // A task of its own: whoever waits for it may be a handler that is abandoned on the way, or go away.
    stopping_ = run_stop();
    stopping_.start(
        [](void* core) {
          // Who waits may destroy this broker: in a turn where nothing of it is under way.
          auto* self = static_cast<BrokerCore*>(core);
          self->post([self] { self->on_stopped(); });
        },
        this);
  }
  while (phase_ != Phase::kStopped) (void)co_await stopped_.wait(runtime.loop);
}

void BrokerCore::on_stopped() {
  phase_ = Phase::kStopped;
  stopped_.notify();
}

Task<void> BrokerCore::run_stop() {
  phase_ = Phase::kStopping;
  started = false;
  announce_timer_.cancel();
  latency_timer_.cancel();
  probe_timer_.cancel();
  connected_.notify();  // Whoever waits for others to come waits in vain now.
  registry_changed.notify();
  const bool is_known = first_announce_ && !gives_up_name_;
  if (is_known && transit != nullptr && transit->connected()) {
    // Peers stop choosing this node; what is still on its way here is served.
    membership->set_local_services(Value::array());
    discovery->announce();
    if (options.disable_balancer) transporter->subscribe_balanced({}, {});
    co_await broker_.sleep(options.registry.stop_delay);
  }
  refusing_ = true;
  if (server != nullptr) server->refuse_new();
  if (options.tracking.enabled) {
    Task<void> draining = drain(runtime.loop.now() + options.tracking.shutdown_timeout);
    co_await std::move(draining);
  }
  // What still runs is told so, and has a moment to end by itself.
  dispatcher->request_stop_of({});
  if (dispatcher->running() > 0) co_await broker_.sleep(kLastMoment);
  co_await host->stop_all();
  calls->shut_down(stopped_error());
  if (canary != nullptr) canary->stop();
  if (pinger != nullptr) pinger->stop();
  co_await next_turn();  // No handler is on the stack there.
  dispatcher->abandon_all();
  if (transit_started_) {
    publish("$transporter.disconnected", Value{{"graceFul", true}});
    discovery->stop(is_known);
    transit->stop([this](const Result<>&) {
      transit_stopped_ = true;
      connected_.notify();
    });
    while (!transit_stopped_) (void)co_await connected_.wait(runtime.loop);
  }
  publish("$broker.stopped", Value());
  if (options.stopped) run_hook("stopped", [this] { options.stopped(broker_); });
  co_await next_turn();
  dispatcher->abandon_all();
  log.info("Node '", options.node_id, "' stopped.");
}

void BrokerCore::spawn(UniqueFunction<Task<void>()> work) {
  auto spawned = std::make_unique<Spawned>();
  Spawned& one = *spawned;
  one.core = this;
  one.number = ++last_spawned_;
  one.work = std::move(work);
  one.task = one.work();
  spawned_.emplace(one.number, std::move(spawned));
  one.task.start(&BrokerCore::on_spawned_end, &one);
}

void BrokerCore::on_spawned_end(void* context) {
  auto& one = *static_cast<Spawned*>(context);
  BrokerCore& core = *one.core;
  try {
    one.task.take();
  } catch (...) {
    core.log.error("A spawned task failed: ", Error::from_exception(std::current_exception()).to_string());
  }
  core.spawned_.erase(one.number);
}

bool BrokerCore::known_service(std::string_view alternatives) const {
  while (true) {
    const std::size_t bar = alternatives.find('|');
    if (registry->has_service(alternatives.substr(0, bar))) return true;
    if (bar == std::string_view::npos) return false;
    alternatives.remove_prefix(bar + 1);
  }
}

Task<void> BrokerCore::wait_for_services(std::vector<std::string> names, Duration timeout) {
  const Instant deadline = timeout > Duration::zero() ? runtime.loop.now() + timeout : kNever;
  while (true) {
    const bool all = std::all_of(names.begin(), names.end(),
                                 [this](const std::string& name) { return known_service(name); });
    if (all) co_return;
    if (is_ending()) stopped_error().raise();
    const bool woken = co_await registry_changed.wait(runtime.loop, deadline);
    if (woken) continue;
    Value services = Value::array();
    Value statuses = Value::array();
    std::string missing;
    for (const std::string& name : names) {
      const bool available = known_service(name);
      if (!available) missing += (missing.empty() ? "" : ", ") + name;
      services.push_back(name);
      statuses.push_back(Value{{"name", name}, {"available", available}});
    }
    Error(ErrorClass::kServer, "Services were not there in time: " + missing + ".", "WAITFOR_SERVICES",
          Value{{"services", std::move(services)}, {"statuses", std::move(statuses)}})
        .raise();
  }
}

// ---- announcing ----

void BrokerCore::on_local_services_changed() {
  publish("$services.changed", Value{{"localService", true}});
  runtime.loop.defer(life_.guard([this] { registry_changed.notify(); }));
  announce_soon();
}

void BrokerCore::announce_soon() {
  if (phase_ != Phase::kRunning && phase_ != Phase::kStarting) return;
  if (announce_timer_.active()) return;
  // A single change goes out in this turn; a burst is told together. While starting, services that start
  // together are announced together, and slow ones do not hold up the rest.
  const Instant due = std::max(runtime.loop.now(), last_announce_ + options.registry.announce_debounce);
  announce_timer_.set(runtime.loop, due, [this] { announce_now(); });
}

void BrokerCore::announce_now() {
  announce_timer_.cancel();
  last_announce_ = runtime.loop.now();
  const bool is_first = !first_announce_;
  if (is_first) first_announce_ = last_announce_;
  membership->set_local_services(host->announcement());
  if (discovery == nullptr) return;
  subscribe_balanced();
  discovery->announce();
  if (is_first) transit->release_requests();
}

void BrokerCore::subscribe_balanced() {
  if (!options.disable_balancer) return;
  std::vector<std::string> actions;
  for (const auto& list : registry->actions()) {
    if (list->local != nullptr && !list->name.starts_with('$')) actions.push_back(list->name);
  }
  std::vector<BalancedEvent> subscriptions;
  for (const auto& list : registry->events()) {
    const bool own =
        std::any_of(list->endpoints.begin(), list->endpoints.end(), [](const auto& e) { return e->local; });
    if (own) subscriptions.push_back({list->group, list->pattern});
  }
  transporter->subscribe_balanced(actions, subscriptions);
}

// ---- what comes in ----

void BrokerCore::on_response(const ResponsePacket& packet) {
  if (!calls->on_response(packet))
    log.debug("A response of '", packet.sender, "' came for nobody: too late, or twice.");
}

void BrokerCore::on_event(const EventPacket& packet, bool is_balanced) {
  if (refusing_) {
    log.debug("Event '", packet.event, "' is dropped: the node is stopping.");
    return;
  }
  events->receive(packet, is_balanced);
}

void BrokerCore::on_control(PacketType type, std::string_view sender, const Value& body,
                            std::string_view remote_host) {
  const Node* node = nodes.find(sender);
  if (node != nullptr) prober->on_heard(*node, runtime.loop.now());
  if (type == PacketType::kPing) return pinger->on_ping(sender, body);
  if (type == PacketType::kPong) {
    // Who was taken for hung and answers is asked what it offers, as after a heartbeat.
    if (node != nullptr && !node->available && prober->is_hung(sender))
      discovery->on_control(PacketType::kHeartbeat, sender, Value::object(), remote_host);
    if (body["id"].str_or({}) == kProbeId) return;
    if (const auto pong = pinger->on_pong(sender, body)) {
      if (latency != nullptr) latency->on_pong(pong->node_id, from_ms(pong->elapsed_ms));
      publish("$node.pong", Value{{"nodeID", pong->node_id},
                                  {"elapsedTime", pong->elapsed_ms},
                                  {"timeDiff", pong->time_diff_ms},
                                  {"id", body["id"]}});
    }
    return;
  }
  if (type == PacketType::kHeartbeat) {
    const auto suspects = body["suspects"].items();
    for (const Value& suspect : suspects.first(std::min(suspects.size(), kSuspectsMax)))
      prober->on_suspected(suspect.str_or({}), runtime.loop.now());
  }
  discovery->on_control(type, sender, body, remote_host);
}

bool BrokerCore::was_here_first(std::string_view other_instance) const {
  if (namesake_joins_later_) return true;
  if (first_announce_ && runtime.loop.now() - *first_announce_ > kJoinGrace) return true;
  // Both are joining: chance decides, and the same way on both sides.
  return namesake_joins_too_ && nodes.self().instance_id < other_instance;
}

bool BrokerCore::answer_namesake() {
  const Instant now = runtime.loop.now();
  if (last_duplicate_answer_ && now - *last_duplicate_answer_ < std::chrono::seconds(1)) return false;
  last_duplicate_answer_ = now;
  discovery->announce();
  return true;
}

void BrokerCore::on_duplicate_joining() {
  if (is_ending()) return;
  if (!first_announce_) {
    namesake_joins_too_ = true;
    return;
  }
  namesake_joins_later_ = true;
  if (answer_namesake())
    log.error("Another process is joining under this node's id '", options.node_id, "'.");
}

void BrokerCore::on_duplicate_node(const Value& info) {
  if (is_ending()) return;
  const std::string_view instance = info["instanceID"].str_or({});
  if (was_here_first(instance)) {  // Say so, and go on.
    if (answer_namesake()) {
      log.error("Another process (instance ", instance.substr(0, kNameBytesMax),
                ") has joined under this node's id '", options.node_id, "'.");
    }
    return;
  }
  give_up_name("another process of the namespace");
}

void BrokerCore::on_duplicate_sighted(const SocketAddress& address) {
  const SocketAddress own = transit->listen_address();
  if (is_ending() || (address.port == own.port && is_own_host(runtime.network, address.host))) return;
  const Instant now = runtime.loop.now();
  if (!namesake_sighted_) namesake_sighted_ = now;
  const bool is_old = first_announce_ && now - *first_announce_ > kJoinGrace;
  // Nothing tells which of two that are new was first: the lesser address stays. But one that gives up is
  // silent from then on, so one that is still there was first after all.
  const auto rank = [](std::uint16_t port, std::string_view ip) { return std::pair(port, ip); };
  const std::vector<std::string>& own_ips = nodes.self().ip_list;
  const bool is_lesser =
      rank(own.port, own_ips.empty() ? std::string_view() : std::string_view(own_ips.front())) <
      rank(address.port, address.host);
  const bool may_win = is_lesser && now - *namesake_sighted_ < kNamesakeGoes;
  if (!is_old && !may_win) return give_up_name("the process at " + address.to_string());
  if (namesake_told_ != Instant() && now - namesake_told_ < kNamesakePause) return;
  namesake_told_ = now;
  log.error("The process at ", address.to_string(), " has this node's id '", options.node_id,
            "', as this one at ", own.to_string(), ": others will take one for the other.");
}

// `holder` is another process that was here first.
void BrokerCore::give_up_name(std::string_view holder) {
  const Error error(ErrorClass::kBase,
                    "The node id '" + options.node_id + "' is taken: " + std::string(holder) +
                        " has it. Give this node another one.",
                    "DUPLICATE_NODE_ID");
  log.fatal(error.message());
  publish("$broker.error",
          Value{{"error", error.to_string()}, {"module", "broker"}, {"type", "duplicateNodeID"}});
  gives_up_name_ = true;
  transit->hold_requests();
  discovery->stop(false);
  spawn([this]() -> Task<void> { co_await stop(); });
  if (options.on_fatal) {
    runtime.loop.defer(life_.guard(
        [this, error] { run_hook("on_fatal", [this, &error] { options.on_fatal(broker_, error); }); }));
  }
}

void BrokerCore::on_transporter_reconnected() {
  log.info("The transporter is connected again.");
  discovery->on_reconnected();
  if (!is_ending()) start_probing();
  publish("$transporter.connected", Value{{"wasReconnect", true}});
}

void BrokerCore::on_transporter_disconnected(const Error& reason) {
  log.warn("The transporter lost its connection: ", reason.message());
  probe_timer_.cancel();
  // Answers that were on their way are lost, and those that come up meanwhile cannot be sent.
  calls->on_disconnected();
  publish("$transporter.error",
          Value{{"error", reason.message()}, {"module", "transporter"}, {"type", "clientError"}});
}

void BrokerCore::on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) {
  discovery->on_node_sighted(node, address, listed);
}

void BrokerCore::on_node_lost(std::string_view node, const Error& reason) {
  log.debug("The link to '", node, "' is lost: ", reason.message());
  on_node_gone(node, reason.type() == "ECONNREFUSED");
}

void BrokerCore::on_node_gone(std::string_view id, bool refused) {
  prober->on_lost(id);
  discovery->on_node_lost(id, refused);
  // It may have been offline before, with calls that still waited for it.
  const Node* node = nodes.find(id);
  if (node != nullptr && !node->available) give_up_on(*node);
}

void BrokerCore::on_undelivered(std::string_view node, std::string_view id) {
  // The first word that nobody takes a node's requests decides everything that is in flight to it.
  calls->on_undelivered(id);
  on_node_gone(node, false);
}

void BrokerCore::on_transit_error(const Error& error, std::string_view type) {
  publish("$transit.error", Value{{"error", error.to_string()}, {"module", "transit"}, {"type", type}});
}

// ---- what changed in the mesh ----

namespace {

Value node_payload(const Node& node) {
  return Value{{"id", node.id},         {"available", node.available}, {"instanceID", node.instance_id},
               {"seq", node.seq},       {"hostname", node.hostname},   {"ipList", node.ip_list},
               {"client", node.client}, {"metadata", node.metadata},   {"services", node.services}};
}

}  // namespace

void BrokerCore::on_node_connected(const Node& node, bool reconnected) {
  if (prober->on_back(node, runtime.loop.now())) give_up_on(node);
  if (latency != nullptr) {
    latency->on_node_connected(node.id, runtime.loop.now());
    latency_timer_.set(runtime.loop, latency->next_tick(), [this] { measure_latency(); });
  }
  publish("$node.connected", Value{{"node", node_payload(node)}, {"reconnected", reconnected}});
}

void BrokerCore::on_node_updated(const Node& node) {
  publish("$node.updated", Value{{"node", node_payload(node)}});
}

void BrokerCore::on_node_restarted(const Node& node) {
  give_up_on(node);
}

void BrokerCore::give_up_on(const Node& node) {
  calls->on_node_lost(node);
  if (server != nullptr) server->on_node_lost(node.id);
}

void BrokerCore::on_node_disconnected(const Node& node, bool unexpected) {
  publish("$node.disconnected", Value{{"node", node_payload(node)}, {"unexpected", unexpected}});
  // From peer to peer the end of its link shows that a node is gone: whatever else speaks against it, its
  // answers may still come.
  if (!transporter->traits().is_bus && !prober->link_ended(node)) prober->on_hung(node, runtime.loop.now());
  if (prober->is_hung(node.id)) {
    calls->on_node_hung(node);
  } else {
    give_up_on(node);
  }
}

void BrokerCore::on_remote_services_changed() {
  publish("$services.changed", Value{{"localService", false}});
  runtime.loop.defer(life_.guard([this] { registry_changed.notify(); }));
}

}  // namespace weft
