#include "broker/calls/call_engine.h"

#include <algorithm>

#include "broker/context_access.h"
#include "lib/base/assert.h"
#include "lib/protocol/wire_error.h"

namespace weft {

namespace {

constexpr std::size_t kPoolMax = 1024;

const Payload kEmptyObject = Payload(Value::object());

// Whether the endpoint did its part: an error that another try would not mend is an answer.
Ending ending_of(const Result<Payload>& result) {
  constexpr int kServerError = 500;
  if (result) return Ending::kAnswered;
  const Error& error = result.error();
  return error.retryable() || error.code() >= kServerError ? Ending::kFailed : Ending::kAnswered;
}

}  // namespace

void CallRecord::recycle() {
  if (engine_ == nullptr) {
    delete this;
    return;
  }
  CallEngine& engine = *engine_;
  engine.unlink(*this);
  reset();
  action_.clear();
  params_ = Payload();
  meta_ = Payload();
  headers_ = Value();
  direct_node_.clear();
  request_id_.clear();
  parent_id_.clear();
  caller_.clear();
  level_ = 1;
  tracing_.reset();
  deadline_ = kNever;
  timeout_.reset();
  fallback_.reset();
  tracked_ = true;
  node_id_.clear();
  std::unique_ptr<CallRecord> self(this);
  if (engine.pool_.size() < kPoolMax) engine.pool_.push_back(std::move(self));
}

CallEngine::CallEngine(Parts parts)
    : parts_(std::move(parts)), pending_(parts_.random.next(), parts_.random.next()) {}

CallEngine::~CallEngine() {
  for (const CallRef& ref : calls_under_way()) {
    auto& call = static_cast<CallRecord&>(*ref.get());
    unlink(call);
    call.engine_ = nullptr;
    call.on_done.reset();
    if (call.timer_ != 0) parts_.loop.cancel(std::exchange(call.timer_, 0));
    if (call.slot_) {
      call.slot_.reset();
      call.release();
    }
  }
}

void CallEngine::link(CallRecord& call) {
  call.previous_ = nullptr;
  call.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &call;
  first_ = &call;
}

void CallEngine::unlink(CallRecord& call) {
  (call.previous_ != nullptr ? call.previous_->next_ : first_) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
  call.previous_ = call.next_ = nullptr;
}

std::vector<CallRef> CallEngine::calls_under_way() const {
  std::vector<CallRef> calls;
  for (CallRecord* call = first_; call != nullptr; call = call->next_) calls.emplace_back(call);
  return calls;
}

CallRef CallEngine::start(std::string_view action, Params&& params, const CallOptions& options,
                          Context* parent) {
  CallRecord* record = nullptr;
  if (pool_.empty()) {
    record = new CallRecord(*this);
  } else {
    record = pool_.back().release();
    pool_.pop_back();
  }
  link(*record);
  CallRef ref(record);
  CallRecord& call = *record;

  call.action_ = action;
  call.params_ = std::move(params).take();
  if (call.params_.is_absent()) call.params_ = kEmptyObject;
  if (parent != nullptr) {
    call.meta_ = ContextAccess(*parent).meta_below(options.meta);
  } else if (options.meta != nullptr) {
    call.meta_ = Payload(*options.meta);
  }
  if (options.headers != nullptr) call.headers_ = *options.headers;
  call.direct_node_ = options.node;
  call.request_id_ = options.request_id;
  call.caller_ = options.caller;
  call.timeout_ = options.timeout;
  call.tracked_ = options.tracking;
  if (call.tracked_) ++active_;
  if (options.fallback != nullptr) call.fallback_ = *options.fallback;
  call.retry_ = RetryState(parts_.options.retry, options.retries, false);
  ++call.attempt_;

  if (shut_down_) {
    finish(call, *shut_down_);
    return ref;
  }
  if (parent != nullptr) {
    call.level_ = next_level(parent->level());
    call.tracing_ = parent->tracing();
    call.parent_id_ = parent->id();
    if (call.request_id_.empty()) call.request_id_ = parent->request_id();
    if (call.caller_.empty() && parent->service() != nullptr) call.caller_ = parent->service()->full_name();
    call.deadline_ = parent->deadline();
    if (const int limit = parts_.options.max_call_level; limit > 0 && parent->level() >= limit) {
      finish(call, Error::max_call_level(parts_.registry.nodes().self().id, parent->level()));
      return ref;
    }
    if (call.deadline_ <= parts_.loop.now()) {
      finish(call, Error::request_skipped(call.action_, parts_.registry.nodes().self().id));
      return ref;
    }
  }
  attempt(call);
  // What was borrowed for the call expression must outlive it if the call goes on.
  if (!call.done()) {
    call.params_.retain();
    call.meta_.retain();
  }
  return ref;
}

Duration CallEngine::timeout_of(const CallRecord& call, const ActionList* list) const {
  Duration timeout = parts_.options.request_timeout;
  if (list != nullptr && list->timeout >= Duration::zero()) timeout = list->timeout;
  if (call.timeout_) timeout = *call.timeout_;
  if (call.deadline_ == kNever) return timeout;
  const Duration left = std::max(call.deadline_ - parts_.loop.now(), Duration(1));
  return timeout > Duration::zero() ? std::min(timeout, left) : left;
}

void CallEngine::attempt(CallRecord& call) {
  call.node_id_.clear();
  ActionList* list = parts_.registry.find_action(call.action_);
  if (list == nullptr) {
    return end_attempt(call, Error::service_not_found(call.action_, call.direct_node_));
  }
  call.retry_.set_idempotent(list->idempotent);
  const Duration timeout = timeout_of(call, list);
  if (!call.direct_node_.empty()) {
    const auto endpoint = parts_.registry.pick_on(call.action_, call.direct_node_);
    if (!endpoint) return end_attempt(call, endpoint.error());
    if ((*endpoint)->local) return run_local(call, **endpoint, timeout);
    call.flight_.begin(**endpoint, parts_.loop.now());
    return send_remote(call, (*endpoint)->node, timeout);
  }
  if (parts_.options.disable_balancer && parts_.sender != nullptr && call.action_.front() != '$') {
    if (list->endpoints.empty()) return end_attempt(call, Error::service_not_available(call.action_));
    return send_remote(call, nullptr, timeout);
  }
  const auto endpoint = parts_.registry.pick(*list, {call.params_, call.meta_, parts_.loop.now()});
  if (!endpoint) return end_attempt(call, endpoint.error());
  if ((*endpoint)->local) return run_local(call, **endpoint, timeout);
  call.flight_.begin(**endpoint, parts_.loop.now());
  send_remote(call, (*endpoint)->node, timeout);
}

void CallEngine::fill_context(CallRecord& call, Context& context, LocalAction& action, Duration timeout) {
  ContextAccess access(context);
  const std::string& self = parts_.registry.nodes().self().id;
  access.set_action(action.full_name());
  access.set_node_id(self);
  access.set_level(call.level_);
  access.set_tracing(call.tracing_);
  access.set_meta(call.meta_);
  access.set_headers(call.headers_.is_null() ? Payload() : Payload(call.headers_));
  if (call.request_id_.empty() && call.retry_.may_retry()) {  // Further tries keep it.
    call.request_id_ = make_uuid(parts_.random);
    access.set_id(call.request_id_);
  }
  access.set_request_id(call.request_id_);
  access.set_parent_id(call.parent_id_);
  access.set_caller(call.caller_);
  access.set_deadline(timeout > Duration::zero() ? parts_.loop.now() + timeout : kNever);
  // Without a further try nobody else needs them.
  context.params = call.retry_.may_retry() ? call.params_ : std::move(call.params_);
}

void CallEngine::note_local_outcome(CallRecord& call, Context& context) {
  ContextAccess access(context);
  call.response_meta = access.current_meta();
  call.response_meta.retain();
  if (!access.response_headers().is_null()) call.response_headers = Payload(access.response_headers());
}

void CallEngine::run_local(CallRecord& call, ActionEndpoint& endpoint, Duration timeout) {
  const std::shared_ptr<LocalAction> action = endpoint.local_action;  // It may remove its own service.
  if (action->is_inline()) return run_local_inline(call, *action, timeout);

  std::unique_ptr<Run> run = parts_.dispatcher.make_run(&action->service());
  fill_context(call, run->context, *action, timeout);
  ContextAccess(run->context).retain();
  run->handler = std::shared_ptr<Handler>(action, &action->handler());
  run->keep = action;
  run->tracked = call.tracked_;
  run->done = [this, ref = CallRef(&call), attempt = call.attempt_](Run& ended, Result<Payload> result) {
    auto& record = static_cast<CallRecord&>(*ref.get());
    if (record.done() || record.attempt_ != attempt) return;  // It came too late.
    note_local_outcome(record, ended.context);
    if (result) result->retain();
    end_attempt(record, std::move(result));
  };
  call.flight_.begin(endpoint, parts_.loop.now());
  arm_timer(call, timeout);
  parts_.dispatcher.start(std::move(run), action->blocking());
}

void CallEngine::run_local_inline(CallRecord& call, LocalAction& action, Duration timeout) {
  Context context(parts_.broker, &action.service());
  fill_context(call, context, action, timeout);
  Result<Payload> result = Dispatcher::invoke(action.handler(), context);
  if (result) result->retain();
  note_local_outcome(call, context);
  end_attempt(call, std::move(result));
}

void CallEngine::send_remote(CallRecord& call, Node* node, Duration timeout) {
  const std::string_view node_id = node != nullptr ? std::string_view(node->id) : std::string_view();
  if (parts_.sender == nullptr) return end_attempt(call, Error::service_not_available(call.action_, node_id));
  if (pending_.size() >= parts_.options.transit.pending_requests_max) {
    return end_attempt(call, Error::queue_is_full(call.action_, node_id, pending_.size(),
                                                  parts_.options.transit.pending_requests_max));
  }
  char id[PendingRequests::kIdSize];
  call.slot_ = pending_.add(&call, id);
  call.add_ref();  // The table's share, until drop_request().
  call.node_ = node;
  call.node_id_ = node_id;

  RequestPacket packet;
  packet.id = {id, sizeof id};
  packet.action = call.action_;
  packet.params = call.params_;
  packet.meta = call.meta_;
  if (!call.headers_.is_null()) packet.headers = Payload(call.headers_);
  packet.timeout_ms = to_ms(timeout);
  packet.level = call.level_;
  packet.tracing = call.tracing_;
  packet.parent_id = call.parent_id_;
  packet.request_id = call.request_id_.empty() ? packet.id : std::string_view(call.request_id_);
  packet.caller = call.caller_;
  const Result<> sent = node != nullptr ? parts_.sender->send_request(node_id, packet)
                                        : parts_.sender->send_balanced_request(packet);
  if (!sent) return end_attempt(call, sent.error());
  if (parts_.canary != nullptr && node != nullptr) {
    parts_.canary->on_request_sent(node_id);
    call.watched_ = true;
  }
  if (call.request_id_.empty()) call.request_id_.assign(id, sizeof id);  // Further tries keep it.
  arm_timer(call, timeout);
}

void CallEngine::arm_timer(CallRecord& call, Duration timeout) {
  if (timeout <= Duration::zero()) return;
  call.timer_ = parts_.loop.schedule(parts_.loop.now() + timeout, life_.guard([this, ref = CallRef(&call)] {
    auto& record = static_cast<CallRecord&>(*ref.get());
    record.timer_ = 0;
    const std::string node = record.node_id_.empty() ? parts_.registry.nodes().self().id : record.node_id_;
    parts_.log.warn("Request '", record.action_, "' to '", node, "' timed out.");
    end_attempt(record, Error::request_timeout(record.action_, node));
  }));
}

void CallEngine::drop_request(CallRecord& call) {
  if (call.timer_ != 0) parts_.loop.cancel(std::exchange(call.timer_, 0));
  if (!call.slot_) return;
  pending_.remove(*call.slot_);
  if (std::exchange(call.watched_, false)) parts_.canary->on_request_ended(call.node_id_);
  call.slot_.reset();
  call.node_ = nullptr;
  call.release();
}

void CallEngine::end_attempt(CallRecord& call, Result<Payload> result, bool node_lost) {
  const CallRef keep(&call);
  drop_request(call);
  land(call.flight_, shut_down_ ? Ending::kAbandoned : ending_of(result), parts_.loop.now());
  ++call.attempt_;
  if (result || shut_down_) return finish(call, std::move(result));

  // A call of one certain node has nowhere else to go at once.
  const auto pause = call.retry_.next(result.error(), node_lost && call.direct_node_.empty(), parts_.random);
  if (!pause) return finish(call, std::move(result));
  const Instant next = parts_.loop.now() + *pause;
  if (next >= call.deadline_) return finish(call, std::move(result));
  call.params_.retain();
  call.meta_.retain();
  parts_.log.debug("Call '", call.action_, "' failed (", result.error().message(), "): trying again in ",
                   to_ms(*pause), " ms.");
  if (*pause == Duration::zero()) {
    // In a turn of its own: what is being lost right now may still be in the lists.
    parts_.loop.defer(life_.guard([this, keep] {
      auto& record = static_cast<CallRecord&>(*keep.get());
      if (!record.done()) attempt(record);
    }));
    return;
  }
  call.timer_ = parts_.loop.schedule(next, life_.guard([this, keep] {
    auto& record = static_cast<CallRecord&>(*keep.get());
    record.timer_ = 0;
    if (!record.done()) attempt(record);
  }));
}

void CallEngine::finish(CallRecord& call, Result<Payload> result) {
  const CallRef keep(&call);
  if (call.tracked_) --active_;
  if (!result && call.fallback_) {
    call.complete(Payload(std::move(*call.fallback_)));
  } else {
    call.complete(std::move(result));
  }
  if (active_ == 0 && when_idle_) {
    auto callback = std::move(when_idle_);
    callback();
  }
}

bool CallEngine::on_response(const ResponsePacket& packet) {
  if (parts_.canary != nullptr) parts_.canary->on_heard(packet.sender);
  CallRecord* call = pending_.find(packet.id);
  if (call == nullptr) return false;
  if (!packet.meta.is_empty_object()) {
    call->response_meta = packet.meta;
    call->response_meta.retain();
  }
  if (!packet.headers.is_empty_object()) {
    call->response_headers = packet.headers;
    call->response_headers.retain();
  }
  if (!packet.success) {
    end_attempt(*call, error_from_wire(packet.error, packet.sender));
    return true;
  }
  // Borrowed from the packet on purpose: a waiter that decodes it in line needs no copy. complete() keeps the
  // outcome beyond this call only if nobody waits yet.
  Payload data = packet.data;
  if (!call->waiter) data.retain();
  end_attempt(*call, std::move(data));
  return true;
}

void CallEngine::on_node_lost(const Node& node) {
  std::vector<CallRef> lost;
  pending_.for_each([&](CallRecord* call) {
    if (call->node_ == &node) lost.emplace_back(call);
  });
  for (const CallRef& ref : lost) {
    auto& call = static_cast<CallRecord&>(*ref.get());
    if (call.node_ != &node) continue;  // Decided meanwhile.
    end_attempt(call, Error::request_rejected(call.action_, node.id), true);
  }
}

void CallEngine::on_undelivered(std::string_view, std::string_view id) {
  CallRecord* call = pending_.find(id);
  if (call == nullptr) return;
  end_attempt(*call, Error::request_rejected(call->action_, call->node_id_), true);
}

void CallEngine::when_idle(UniqueFunction<void()> callback) {
  when_idle_ = std::move(callback);
  if (active_ == 0 && when_idle_) {
    auto now = std::move(when_idle_);
    now();
  }
}

void CallEngine::shut_down(const Error& error) {
  shut_down_ = error;
  for (const CallRef& ref : calls_under_way()) {
    auto& call = static_cast<CallRecord&>(*ref.get());
    if (!call.done()) end_attempt(call, error);
  }
}

}  // namespace weft
