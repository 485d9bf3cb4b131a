// Hedged calls: the part of the CallEngine that makes a slow call a second time, of another node, and takes
// the first answer.

#include <algorithm>

#include "broker/calls/call_engine.h"

namespace weft {

void CallEngine::arm_hedge(CallRecord& call) {
  CallRecord::Extras& extras = *call.extras_;
  if (extras.hedge_timer != 0) parts_.loop.cancel(std::exchange(extras.hedge_timer, 0));
  const ActionList* list = parts_.registry.find_action(call.action_);
  // Who is to answer is known only when this node chooses.
  if (list == nullptr || extras.hedge || !call.direct_node_.empty() || parts_.options.disable_balancer)
    return;
  std::optional<Duration> pause = extras.hedge_after;
  if (extras.hedge_quantile > 0) {
    const auto usual = list->latency != nullptr ? list->latency->at(extras.hedge_quantile) : std::nullopt;
    if (usual) pause = std::max(*usual, pause.value_or(Duration::zero()));
  }
  if (!pause) return;  // Not enough calls have been seen.
  const Instant when = parts_.loop.now() + *pause;
  if (when >= call.expires_) return;
  call.params_.retain();
  call.meta_.retain();
  extras.hedge_timer =
      parts_.loop.schedule(when, life_.guard([this, ref = CallRef(&call), attempt = call.attempt_] {
        auto& record = static_cast<CallRecord&>(*ref.get());
        if (record.done() || record.extras_ == nullptr) return;
        record.extras_->hedge_timer = 0;
        if (record.attempt_ == attempt) start_hedge(record);
      }));
}

void CallEngine::start_hedge(CallRecord& call) {
  const Instant now = parts_.loop.now();
  ActionList* list = parts_.registry.find_action(call.action_);
  if (list == nullptr || list->available.size() < 2 || !list->hedge_budget || !list->hedge_budget->take(now))
    return;
  CallRecord& twin = make_record();
  call.extras_->hedge = CallRef(&twin);
  twin.action_ = call.action_;
  twin.params_ = call.params_;
  twin.meta_ = call.meta_;
  twin.headers_ = call.headers_;
  twin.request_id_ = call.request_id_;
  twin.parent_id_ = call.parent_id_;
  twin.caller_ = call.caller_;
  twin.level_ = call.level_;
  twin.tracing_ = call.tracing_;
  twin.deadline_ = std::min(call.deadline_, call.expires_);  // It has what is left of this attempt's time.
  twin.timeout_ = Duration::zero();
  twin.tracked_ = false;  // The call itself is.
  twin.wants_node_ = call.wants_node_;
  twin.counted_ = true;
  twin.avoid_ = call.node_id_.empty() ? parts_.registry.nodes().self().id : call.node_id_;
  ++twin.attempt_;
  twin.on_done =
      life_.guard([this, ref = CallRef(&call)] { on_hedge_done(static_cast<CallRecord&>(*ref.get())); });
  const CallRef keep(&twin);
  attempt(twin);
}

void CallEngine::on_hedge_done(CallRecord& call) {
  if (call.done() || call.extras_ == nullptr || !call.extras_->hedge) return;
  const CallRef ended = std::exchange(call.extras_->hedge, CallRef());
  auto& twin = static_cast<CallRecord&>(*ended.get());
  if (!twin.outcome->ok()) {
    auto held = std::exchange(call.extras_->held, std::nullopt);
    if (held) decide(call, std::move(*held), call.extras_->held_loss);
    return;
  }
  const CallRef keep(&call);
  abandon(call);
  call.response_meta = twin.response_meta;
  call.response_headers = twin.response_headers;
  call.response_node = twin.response_node;
  finish(call, std::move(*twin.outcome));
}

void CallEngine::cancel_hedge(CallRecord& call) {
  CallRecord::Extras& extras = *call.extras_;
  if (extras.hedge_timer != 0) parts_.loop.cancel(std::exchange(extras.hedge_timer, 0));
  extras.held.reset();
  const CallRef hedge = std::exchange(extras.hedge, CallRef());
  if (!hedge) return;
  auto& twin = static_cast<CallRecord&>(*hedge.get());
  twin.on_done.reset();
  if (!twin.done()) abandon(twin);
}

// Ends the attempt without an outcome: another one was faster. A handler of this node is told.
void CallEngine::abandon(CallRecord& call) {
  drop_request(call);
  land(call.flight_, Ending::kAbandoned, parts_.loop.now());
  ++call.attempt_;
  ActionList* list = call.timed_ ? parts_.registry.find_action(call.action_) : nullptr;
  if (list != nullptr && list->latency != nullptr)  // At least so long.
    list->latency->add(parts_.loop.now() - call.begun_);
  if (call.guard_.guard != nullptr) guards_.end(call.guard_, call.action_, CallOutcome::kUnknown);
  if (const std::uint64_t run = std::exchange(call.run_, 0); run != 0) parts_.dispatcher.request_stop(run);
}

}  // namespace weft
