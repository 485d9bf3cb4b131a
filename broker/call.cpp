#include "broker/call.h"

#include "broker/context.h"
#include "lib/base/assert.h"

namespace weft {

namespace detail {

void CallState::complete(Result<Payload> result) {
  WEFT_ASSERT(!done_);
  done_ = true;
  outcome.emplace(std::move(result));
  const CallRef keep(this);  // Whoever waits may drop the last share.
  if (auto resumed = std::exchange(waiter, nullptr)) resumed.resume();
  if (auto callback = std::move(on_done)) callback();
}

void CallState::reset() {
  done_ = false;
  waiter = nullptr;
  on_done.reset();
  outcome.reset();
  response_meta = Payload();
  response_headers = Payload();
}

}  // namespace detail

namespace {

void merge_meta(Context* parent, const Payload& meta) {
  if (parent == nullptr || meta.is_empty_object()) return;
  if (auto value = meta.to_value()) parent->meta().merge(*value);
}

}  // namespace

Result<Payload> CallAwaiterBase::take() {
  merge_meta(parent_, call_->response_meta);
  if (response_meta_ != nullptr) *response_meta_ = call_->response_meta.value();
  if (response_headers_ != nullptr) *response_headers_ = call_->response_headers.value();
  WEFT_ASSERT(call_->outcome.has_value());
  return std::move(*call_->outcome);
}

MultiCall::MultiCall(std::vector<CallRef> calls, Context* parent)
    : state_(std::make_shared<State>()), parent_(parent) {
  state_->calls = std::move(calls);
  for (const CallRef& call : state_->calls) {
    if (call->done()) {
      state_->failed = state_->failed || !call->outcome->ok();
      continue;
    }
    ++state_->open;
    call->on_done = [state = state_, one = call.get()] {
      --state->open;
      state->failed = state->failed || !one->outcome->ok();
      if (state->open > 0 && !(state->failed && state->fail_fast)) return;
      if (auto resumed = std::exchange(state->waiter, nullptr)) resumed.resume();
    };
  }
}

bool MultiCall::await_ready() const {
  return state_->open == 0 || (state_->failed && state_->fail_fast);
}
void MultiCall::await_suspend(std::coroutine_handle<> waiter) {
  state_->waiter = waiter;
}

std::vector<Result<Value>> MultiCall::take_all() {
  std::vector<Result<Value>> results;
  results.reserve(state_->calls.size());
  for (const CallRef& call : state_->calls) {
    merge_meta(parent_, call->response_meta);
    if (!call->outcome->ok()) {
      results.emplace_back(call->outcome->error());
    } else {
      results.push_back((*call->outcome)->to_value());
    }
  }
  return results;
}

std::vector<Value> MultiCall::await_resume() {
  std::vector<Value> values;
  for (const CallRef& call : state_->calls) {
    if (!call->done()) continue;
    merge_meta(parent_, call->response_meta);
    if (!call->outcome->ok()) call->outcome->error().raise();
  }
  for (const CallRef& call : state_->calls) values.push_back((*call->outcome)->to_value().value());
  return values;
}

}  // namespace weft
