#include "broker/broker.h"

#include "broker/core.h"
#include "broker/services/node_service.h"
#include "lib/loop/when_all.h"

namespace weft {

LocalListener& LocalListener::operator=(LocalListener&& other) noexcept {
  std::swap(bus_, other.bus_);
  std::swap(id_, other.id_);
  return *this;
}

LocalListener::~LocalListener() {
  if (const auto bus = bus_.lock(); bus != nullptr && id_ != 0) bus->unsubscribe(id_);
}

Broker::Broker(const Runtime& runtime, BrokerOptions options, std::unique_ptr<Transporter> transporter)
    : core_(std::make_unique<BrokerCore>(*this, runtime, std::move(options), std::move(transporter))) {
  if (core_->options.internal_services) {
    add_service(make_node_service({.registry = *core_->registry,
                                   .loop = runtime.loop,
                                   .system = runtime.system,
                                   .network = runtime.network,
                                   .options = core_->options}));
  }
  if (core_->options.created) core_->options.created(*this);
}

Broker::~Broker() = default;

Task<void> Broker::start() {
  return core_->start();
}
Task<void> Broker::stop() {
  return core_->stop();
}
bool Broker::started() const {
  return core_->started;
}

Service& Broker::add_service(std::shared_ptr<Service> service) {
  return core_->host->add(std::move(service));
}
Task<void> Broker::destroy_service(std::string full_name) {
  return core_->host->destroy(std::move(full_name));
}
Service* Broker::local_service(std::string_view full_name) const {
  return core_->host->find(full_name);
}

LocalListener Broker::on_local(std::string pattern,
                               std::function<void(std::string_view, const Value&)> listener) {
  return {core_->local_bus, core_->local_bus->subscribe(std::move(pattern), std::move(listener))};
}

Task<std::optional<Pong>> Broker::ping(std::string node_id, Duration timeout) {
  const Node* node = core_->nodes.find(node_id);
  if (core_->pinger == nullptr || node == nullptr || node->local || !node->available) co_return std::nullopt;
  co_return co_await core_->pinger->ping(std::move(node_id), make_id(), timeout);
}

Task<std::vector<std::pair<std::string, std::optional<Pong>>>> Broker::ping_all(Names names,
                                                                                Duration timeout) {
  std::vector<std::string> node_ids = std::move(names.list);
  if (node_ids.empty()) {
    core_->nodes.for_each([&node_ids](const Node& node) {
      if (node.available && !node.local) node_ids.push_back(node.id);
    });
  }
  std::vector<std::pair<std::string, std::optional<Pong>>> answers;
  for (const std::string& id : node_ids) answers.emplace_back(id, std::nullopt);
  std::vector<Task<void>> tasks;
  // Named: a closure with captures must not be a temporary in an expression that awaits.
  const auto ping_one = [](Broker& broker, std::pair<std::string, std::optional<Pong>>& answer,
                           Duration limit) -> Task<void> {
    answer.second = co_await broker.ping(answer.first, limit);
  };
  for (auto& answer : answers) tasks.push_back(ping_one(*this, answer, timeout));
  const auto failures = co_await when_all(std::move(tasks));
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  co_return answers;
}

Task<void> Broker::wait_for_services(Names full_names, Duration timeout) {
  return core_->wait_for_services(std::move(full_names.list), timeout);
}

void Broker::report(std::string_view action, std::string_view node_id, CallOutcome outcome) {
  core_->calls->report(action, node_id, outcome);
}

void Broker::spawn(UniqueFunction<Task<void>()> work) {
  if (core_->runtime.loop.is_current()) return core_->spawn(std::move(work));
  core_->post([core = core_.get(), work = std::move(work)]() mutable { core->spawn(std::move(work)); });
}

Task<void> Broker::sleep(Duration duration) {
  Signal never;
  const Instant deadline = now() + duration;
  (void)co_await never.wait(core_->runtime.loop, deadline);
}

const std::string& Broker::node_id() const {
  return core_->options.node_id;
}
const BrokerOptions& Broker::options() const {
  return core_->options;
}
const Logger& Broker::log() const {
  return core_->log;
}
Instant Broker::now() const {
  return core_->runtime.loop.now();
}
const Runtime& Broker::runtime() const {
  return core_->runtime;
}
std::string Broker::make_id() {
  return make_uuid(core_->runtime.random);
}
Value Broker::node_list(bool with_services, bool only_available) const {
  return list_nodes(core_->nodes, with_services, only_available);
}
std::size_t Broker::pending_requests() const {
  return core_->calls->pending_requests();
}

CallRef Broker::start_call(std::string_view action, Params&& params, const CallOptions& options,
                           Context* parent) {
  return core_->calls->start(action, std::move(params), options, parent);
}

MultiCall Broker::start_calls(std::vector<CallRequest> calls, Context* parent) {
  std::vector<CallRef> started;
  started.reserve(calls.size());
  for (CallRequest& call : calls)
    started.push_back(start_call(call.action, std::move(call.params), call.options, parent));
  return {std::move(started), parent};
}

void Broker::refuse_loop_thread(std::string_view what) const {
  if (!core_->runtime.loop.is_current()) return;
  Error(ErrorClass::kBase,
        std::string(what) + " on the loop's thread would wait for itself: co_await call().", "WRONG_THREAD")
      .raise();
}

void Broker::call_from_outside(std::string_view action, Params&& params, const CallOptions& options,
                               UniqueFunction<void(Result<Payload>)> done) {
  // Everything borrowed is copied for the way to the other thread.
  struct Request {
    std::string action;
    Payload params;
    CallOptions options;
    std::string node, request_id, caller;
    Value meta, headers, fallback;
    UniqueFunction<void(Result<Payload>)> done;
  };
  auto request = std::make_unique<Request>();
  request->action = action;
  request->params = std::move(params).take();
  request->params.retain();
  request->options = options;
  request->node = options.node;
  request->request_id = options.request_id;
  request->caller = options.caller;
  if (options.meta != nullptr) request->meta = *options.meta;
  if (options.headers != nullptr) request->headers = *options.headers;
  if (options.fallback != nullptr) request->fallback = *options.fallback;
  request->done = std::move(done);
  core_->post([this, request = std::move(request)]() mutable {
    CallOptions& own = request->options;
    own.node = request->node;
    own.request_id = request->request_id;
    own.caller = request->caller;
    if (own.meta != nullptr) own.meta = &request->meta;
    if (own.headers != nullptr) own.headers = &request->headers;
    if (own.fallback != nullptr) own.fallback = &request->fallback;
    own.response_meta = nullptr;  // They belong to another thread.
    own.response_headers = nullptr;
    const CallRef call = start_call(request->action, Params(std::move(request->params)), own, nullptr);
    if (call->done()) return request->done(std::move(*call->outcome));
    call->on_done = [state = call.get(), done = std::move(request->done)]() mutable {
      done(std::move(*state->outcome));
    };
  });
}

void Broker::send_event(EventType type, std::string_view event, Params&& payload, const EventOptions& options,
                        Context* parent) {
  core_->events->send(type, event, std::move(payload), options, parent);
}

}  // namespace weft
