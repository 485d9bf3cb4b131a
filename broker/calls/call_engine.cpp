#include "broker/calls/call_engine.h"

#include <algorithm>

#include "broker/context_access.h"
#include "lib/base/assert.h"
#include "lib/protocol/wire_error.h"

namespace weft {

namespace {

constexpr std::size_t kPoolMax = 1024;
constexpr int kUndeliveredMax = 10;  // A bus that never delivers must not keep a call going round.

const Payload kEmptyObject = Payload(Value::object());

// Whether the endpoint did its part: an error that another try would not mend is an answer.
Ending ending_of(const Result<Payload>& result) {
  constexpr int kServerError = 500;
  if (result) return Ending::kAnswered;
  const Error& error = result.error();
  return error.retryable() || error.code() >= kServerError ? Ending::kFailed : Ending::kAnswered;
}

// What a hook of the user's says of a failure; without one, or if it throws, `otherwise`.
bool ask(const std::function<bool(const Error&)>& hook, const Error& error, bool otherwise) {
  if (!hook) return otherwise;
  try {
    return hook(error);
  } catch (...) {
    return otherwise;
  }
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
  guard_ = {};
  run_ = 0;
  serving_ = nullptr;
  context_ = nullptr;
  counted_ = timed_ = wants_node_ = false;
  avoid_.clear();
  extras_.reset();
  undelivered_ = 0;
  std::unique_ptr<CallRecord> self(this);
  if (engine.pool_.size() < kPoolMax) engine.pool_.push_back(std::move(self));
}

CallEngine::CallEngine(Parts parts)
    : parts_(std::move(parts)),
      guards_({parts_.loop, parts_.registry, parts_.publish, parts_.log}),
      pending_(parts_.random.next(), parts_.random.next()) {}

CallEngine::~CallEngine() {
  for (const CallRef& ref : calls_under_way()) {
    auto& call = static_cast<CallRecord&>(*ref.get());
    unlink(call);
    call.engine_ = nullptr;
    call.on_done.reset();
    if (call.extras_ != nullptr) {
      if (call.extras_->hedge_timer != 0) parts_.loop.cancel(call.extras_->hedge_timer);
      call.extras_.reset();
    }
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

CallRecord& CallEngine::make_record() {
  CallRecord* record = nullptr;
  if (pool_.empty()) {
    record = new CallRecord(*this);
  } else {
    record = pool_.back().release();
    pool_.pop_back();
  }
  link(*record);
  return *record;
}

CallRef CallEngine::start(std::string_view action, Params&& params, const CallOptions& options,
                          Context* parent) {
  CallRecord& call = make_record();
  CallRef ref(&call);

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
  call.wants_node_ = options.response_node != nullptr;
  if (options.fallback != nullptr) call.fallback_ = *options.fallback;
  if (!options.idempotency_key.empty()) {
    if (!call.headers_.is_object()) call.headers_ = Value::object();
    call.headers_.set(IdempotencyTable::kHeader, options.idempotency_key);
  }
  if (options.fallback_function != nullptr || options.hedge_after || options.hedge_quantile > 0) {
    call.extras_ = std::make_unique<CallRecord::Extras>();
    if (options.fallback_function != nullptr) call.extras_->fallback = *options.fallback_function;
    call.extras_->hedge_after = options.hedge_after;
    call.extras_->hedge_quantile = options.hedge_quantile;
  }
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
  call.reached_ = false;
  if (call.wants_node_) call.response_node.clear();
  ActionList* list = parts_.registry.find_action(call.action_);
  if (list == nullptr) {
    return end_attempt(call, Error::service_not_found(call.action_, call.direct_node_));
  }
  note_first_try(call, *list);
  call.retry_.set_idempotent(list->idempotent);
  const Duration timeout = timeout_of(call, list);
  if (!call.direct_node_.empty()) {
    const auto endpoint = parts_.registry.pick_on(call.action_, call.direct_node_);
    if (!endpoint) return end_attempt(call, endpoint.error());
    return place(call, *list, **endpoint, timeout);
  }
  if (parts_.options.disable_balancer && parts_.sender != nullptr && call.action_.front() != '$') {
    if (list->endpoints.empty()) return end_attempt(call, Error::service_not_available(call.action_));
    return send_remote(call, nullptr, timeout);
  }
  const auto endpoint =
      parts_.registry.pick(*list, {call.params_, call.meta_, parts_.loop.now()}, call.avoid_);
  if (!endpoint) return end_attempt(call, endpoint.error());
  place(call, *list, **endpoint, timeout);
}

void CallEngine::place(CallRecord& call, ActionList& list, ActionEndpoint& endpoint, Duration timeout) {
  if (endpoint.guard != nullptr) call.guard_ = guards_.begin(list, endpoint);
  if (call.timed_) call.begun_ = parts_.loop.now();
  if (endpoint.local) return run_local(call, endpoint, timeout);
  call.flight_.begin(endpoint, parts_.loop.now());
  send_remote(call, endpoint.node, timeout);
}

void CallEngine::note_first_try(CallRecord& call, ActionList& list) {
  if (call.may_hedge()) {
    if (!list.hedge_budget) list.hedge_budget.emplace(parts_.options.hedge_budget, parts_.loop.now());
    if (call.extras_->hedge_quantile > 0 && list.latency == nullptr)
      list.latency = std::make_unique<LatencyQuantile>();
  }
  call.timed_ = list.latency != nullptr;
  if (std::exchange(call.counted_, true)) return;
  if (list.retry) call.retry_.use(*list.retry);
  if (!list.retry_budget) list.retry_budget.emplace(parts_.options.retry_budget, parts_.loop.now());
  list.retry_budget->on_call();
  if (list.hedge_budget) list.hedge_budget->on_call();
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
  if (call.request_id_.empty() && call.needs_params()) {  // Further tries keep it.
    call.request_id_ = make_uuid(parts_.random);
    access.set_id(call.request_id_);
  }
  access.set_request_id(call.request_id_);
  access.set_parent_id(call.parent_id_);
  access.set_caller(call.caller_);
  access.set_deadline(timeout > Duration::zero() ? parts_.loop.now() + timeout : kNever);
  // Without a further try nobody else needs them.
  context.params = call.needs_params() ? call.params_ : std::move(call.params_);
}

void CallEngine::note_local_outcome(CallRecord& call, Context& context) {
  ContextAccess access(context);
  call.response_meta = access.current_meta();
  call.response_meta.retain();
  if (!access.response_headers().is_null()) call.response_headers = Payload(access.response_headers());
}

void CallEngine::run_local(CallRecord& call, ActionEndpoint& endpoint, Duration timeout) {
  const std::shared_ptr<LocalAction> action = endpoint.local_action;  // It may remove its own service.
  std::string key;
  if (parts_.repeats != nullptr && !call.headers_.is_null()) {
    key = parts_.repeats->key_of(call.action_, Payload(call.headers_));
    if (!key.empty() && is_repeat(call, key, timeout)) return;
  }
  call.reached_ = true;
  if (action->is_inline()) return run_local_inline(call, *action, timeout, key);

  std::unique_ptr<Run> run = parts_.dispatcher.make_run(&action->service());
  fill_context(call, run->context, *action, timeout);
  ContextAccess(run->context).retain();
  run->handler = std::shared_ptr<Handler>(action, &action->handler());
  run->keep = action;
  run->queue = action->queue();
  run->tracked = call.tracked_;
  auto own_key = key.empty() ? nullptr : std::make_unique<std::string>(std::move(key));
  run->done = [this, ref = CallRef(&call), attempt = call.attempt_, own_key = std::move(own_key)](
                  Run& ended, Result<Payload> result) {
    auto& record = static_cast<CallRecord&>(*ref.get());
    if (own_key != nullptr) remember(*own_key, result, ended.context);
    if (record.done() || record.attempt_ != attempt) return;  // It came too late.
    record.run_ = 0;
    note_local_outcome(record, ended.context);
    if (result) result->retain();
    record.context_ = &ended.context;
    end_attempt(record, std::move(result));
  };
  call.flight_.begin(endpoint, parts_.loop.now());
  call.run_ = run->number;
  call.serving_ = action.get();
  arm_timer(call, timeout);
  if (call.may_hedge()) arm_hedge(call);
  parts_.dispatcher.start(std::move(run), action->blocking());
}

bool CallEngine::is_repeat(CallRecord& call, const std::string& key, Duration timeout) {
  auto waiter = [this, ref = CallRef(&call), attempt = call.attempt_](const IdempotencyTable::Answer& first) {
    auto& record = static_cast<CallRecord&>(*ref.get());
    if (record.done() || record.attempt_ != attempt) return;
    record.response_meta = first.meta;
    record.response_headers = first.headers;
    Result<Payload> result = first.result;
    if (result) result->retain();
    end_attempt(record, std::move(result));
  };
  const auto turn = parts_.repeats->begin(key, parts_.loop.now(), std::move(waiter));
  if (turn == IdempotencyTable::Turn::kWait) arm_timer(call, timeout);
  return turn != IdempotencyTable::Turn::kRun;
}

void CallEngine::remember(const std::string& key, const Result<Payload>& result, Context& context) {
  const ContextAccess access(context);
  parts_.repeats->finish(
      key,
      {result, access.current_meta(),
       access.response_headers().is_null() ? Payload() : Payload(access.response_headers())},
      parts_.loop.now());
}

void CallEngine::run_local_inline(CallRecord& call, LocalAction& action, Duration timeout,
                                  const std::string& key) {
  Context context(parts_.broker, &action.service());
  fill_context(call, context, action, timeout);
  Result<Payload> result = Dispatcher::invoke(action.handler(), context);
  if (result) result->retain();
  note_local_outcome(call, context);
  if (!key.empty()) remember(key, result, context);
  call.serving_ = &action;
  call.context_ = &context;
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
  if (parts_.prober != nullptr && node != nullptr) parts_.prober->on_asked(*node, parts_.loop.now());
  if (parts_.canary != nullptr && node != nullptr) {
    parts_.canary->on_request_sent(node_id);
    call.watched_ = true;
  }
  call.reached_ = true;
  if (call.request_id_.empty()) call.request_id_.assign(id, sizeof id);  // Further tries keep it.
  arm_timer(call, timeout);
  if (call.may_hedge()) arm_hedge(call);
}

void CallEngine::arm_timer(CallRecord& call, Duration timeout) {
  call.expires_ = kNever;
  if (timeout <= Duration::zero()) return;
  call.expires_ = parts_.loop.now() + timeout;
  call.timer_ = parts_.loop.schedule(parts_.loop.now() + timeout, life_.guard([this, ref = CallRef(&call)] {
    auto& record = static_cast<CallRecord&>(*ref.get());
    record.timer_ = 0;
    const std::string node = record.node_id_.empty() ? parts_.registry.nodes().self().id : record.node_id_;
    parts_.log.warn("Request '", record.action_, "' to '", node, "' timed out.");
    const std::uint64_t run = std::exchange(record.run_, 0);
    record.context_ = run != 0 ? parts_.dispatcher.context_of(run) : nullptr;
    end_attempt(record, Error::request_timeout(record.action_, node));
    if (run != 0) parts_.dispatcher.request_stop(run);  // Last: what it still gives comes too late.
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

void CallEngine::attempt_again(CallRecord& call) {
  call.params_.retain();
  call.meta_.retain();
  parts_.loop.defer(life_.guard([this, keep = CallRef(&call)] {
    auto& record = static_cast<CallRecord&>(*keep.get());
    if (!record.done()) attempt(record);
  }));
}

void CallEngine::end_attempt(CallRecord& call, Result<Payload> result, Loss loss) {
  const CallRef keep(&call);
  drop_request(call);
  land(call.flight_, shut_down_ ? Ending::kAbandoned : ending_of(result), parts_.loop.now());
  ++call.attempt_;
  if (call.guard_.guard != nullptr) guards_.end(call.guard_, call.action_, outcome_of(call, result));
  if (call.timed_ && result && call.reached_) {
    ActionList* list = parts_.registry.find_action(call.action_);
    if (list != nullptr && list->latency != nullptr) list->latency->add(parts_.loop.now() - call.begun_);
  }
  if (result || shut_down_) return finish(call, std::move(result));
  if (call.extras_ != nullptr && call.extras_->hedge) {  // Another one may still answer.
    call.extras_->held = std::move(result);
    call.extras_->held_loss = loss;
    call.context_ = nullptr;  // It does not wait.
    return;
  }
  decide(call, std::move(result), loss);
}

void CallEngine::decide(CallRecord& call, Result<Payload> result, Loss loss) {
  const CallRef keep(&call);
  // A call of one certain node has nowhere else to go at once.
  const bool may_move = loss != Loss::kNone && call.direct_node_.empty();
  // Who did not get it did not run it: that is no try.
  if (loss == Loss::kUndelivered && may_move && ++call.undelivered_ <= kUndeliveredMax) {
    call.context_ = nullptr;
    return attempt_again(call);
  }
  const bool retryable = ask(parts_.options.is_retryable, result.error(), result.error().retryable());
  const auto pause = call.retry_.next(retryable, may_move, parts_.random);
  if (!pause) return finish(call, std::move(result));
  const Instant next = parts_.loop.now() + *pause;
  if (next >= call.deadline_ || !grant_retry(call, loss != Loss::kNone))
    return finish(call, std::move(result));
  call.context_ = nullptr;
  if (call.reached_) call.avoid_ = call.node_id_.empty() ? parts_.registry.nodes().self().id : call.node_id_;
  parts_.log.debug("Call '", call.action_, "' failed (", result.error().message(), "): trying again in ",
                   to_ms(*pause), " ms.");
  if (*pause == Duration::zero()) return attempt_again(call);
  call.params_.retain();
  call.meta_.retain();
  call.timer_ = parts_.loop.schedule(next, life_.guard([this, keep] {
    auto& record = static_cast<CallRecord&>(*keep.get());
    record.timer_ = 0;
    if (!record.done()) attempt(record);
  }));
}

// What is tried again because it reached nobody, or was lost with its node, burdens nobody twice: the budget
// is for the rest.
bool CallEngine::grant_retry(CallRecord& call, bool node_lost) {
  if (node_lost || !call.reached_) return true;
  ActionList* list = parts_.registry.find_action(call.action_);
  if (list == nullptr || !list->retry_budget || list->retry_budget->take(parts_.loop.now())) return true;
  parts_.log.debug("Call '", call.action_, "' is not tried again: the action's retry budget is used up.");
  return false;
}

CallOutcome CallEngine::outcome_of(const CallRecord& call, const Result<Payload>& result) const {
  if (result) return CallOutcome::kSuccess;
  if (shut_down_ || !call.reached_) return CallOutcome::kUnknown;
  const Error& error = result.error();
  // Relayed from a third node: this one did its part.
  if (!error.node_id().empty() && error.node_id() != call.node_id_) return CallOutcome::kAnswered;
  constexpr int kServerError = 500;
  const bool failed = ask(parts_.options.is_failure, error, error.code() >= kServerError);
  return failed ? CallOutcome::kFailure : CallOutcome::kAnswered;
}

Result<Payload> CallEngine::recover(CallRecord& call, const Error& error) {
  if (call.fallback_) return Payload(std::move(*call.fallback_));
  if (call.extras_ != nullptr && call.extras_->fallback) {
    try {
      return Payload(call.extras_->fallback(error));
    } catch (...) {
      return Error::from_exception(std::current_exception());
    }
  }
  if (call.context_ != nullptr && call.serving_ != nullptr && call.serving_->has_fallback())
    return call.serving_->recover(*call.context_, error);
  return error;
}

void CallEngine::finish(CallRecord& call, Result<Payload> result) {
  const CallRef keep(&call);
  if (call.extras_ != nullptr) cancel_hedge(call);
  if (call.tracked_) --active_;
  if (call.wants_node_ && call.response_node.empty() && call.reached_)
    call.response_node = call.node_id_.empty() ? parts_.registry.nodes().self().id : call.node_id_;
  if (!result) result = recover(call, result.error());
  call.context_ = nullptr;
  call.complete(std::move(result));
  if (active_ == 0 && when_idle_) {
    auto callback = std::move(when_idle_);
    callback();
  }
}

bool CallEngine::on_response(const ResponsePacket& packet) {
  if (parts_.canary != nullptr) parts_.canary->on_heard(packet.sender);
  CallRecord* call = pending_.find(packet.id);
  if (call == nullptr) return false;
  if (call->wants_node_) call->response_node = packet.sender;
  if (parts_.prober != nullptr && call->node_ != nullptr) {
    parts_.prober->on_heard(*call->node_, parts_.loop.now());
  }
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

void CallEngine::reject(FunctionRef<bool(const CallRecord&)> lost) {
  std::vector<CallRef> rejected;
  pending_.for_each([&](CallRecord* call) {
    if (lost(*call)) rejected.emplace_back(call);
  });
  for (const CallRef& ref : rejected) {
    auto& call = static_cast<CallRecord&>(*ref.get());
    if (!call.slot_ || !lost(call)) continue;  // Decided meanwhile.
    end_attempt(call, Error::request_rejected(call.action_, call.node_id_), Loss::kNodeLost);
  }
}

void CallEngine::on_node_lost(const Node& node) {
  reject([&node](const CallRecord& call) { return call.node_ == &node; });
}

void CallEngine::on_node_hung(const Node& node) {
  reject([&node](const CallRecord& call) {
    return call.node_ == &node && call.direct_node_.empty() && call.retry_.may_retry();
  });
}

void CallEngine::on_disconnected() {
  reject([](const CallRecord&) { return true; });
}

void CallEngine::on_undelivered(std::string_view id) {
  CallRecord* call = pending_.find(id);
  if (call == nullptr) return;
  end_attempt(*call, Error::request_rejected(call->action_, call->node_id_), Loss::kUndelivered);
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
