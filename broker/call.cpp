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
  response_node.clear();
}

}  // namespace detail

namespace {

void merge_meta(Context* parent, const Payload& meta) {
  if (parent == nullptr || meta.is_empty_object()) return;
  if (auto value = meta.to_value()) parent->meta().merge(*value);
}

// What a peer sent as meta or headers; {} if that is no object.
Value object_of(const Payload& payload) {
  auto value = payload.to_value();
  return value && value->is_object() ? *std::move(value) : Value::object();
}

}  // namespace

Result<Payload> CallAwaiterBase::take() {
  merge_meta(parent_, call_->response_meta);
  if (response_meta_ != nullptr) *response_meta_ = object_of(call_->response_meta);
  if (response_headers_ != nullptr) *response_headers_ = object_of(call_->response_headers);
  if (response_node_ != nullptr) *response_node_ = call_->response_node;
  WEFT_ASSERT(call_->outcome.has_value());
  return std::move(*call_->outcome);
}

MultiCall::MultiCall(std::vector<CallRef> calls, Context* parent)
    : state_(std::make_shared<State>()), parent_(parent) {
  state_->calls = std::move(calls);
  for (const CallRef& call : state_->calls) {
    if (call->done()) {
      state_->note_end(*call.get());
      continue;
    }
    ++state_->open;
    call->on_done = [state = state_, one = call.get()] {
      --state->open;
      state->note_end(*one);
      if (!state->ready()) return;
      if (auto resumed = std::exchange(state->waiter, nullptr)) resumed.resume();
    };
  }
}

MultiCall::~MultiCall() {
  if (state_ != nullptr) state_->waiter = nullptr;
}

bool MultiCall::await_ready() const {
  return state_->ready();
}
void MultiCall::await_suspend(std::coroutine_handle<> waiter) {
  state_->waiter = waiter;
}

void MultiCall::merge_metas() {
  for (const CallRef& call : state_->calls) {
    if (call->done()) merge_meta(parent_, call->response_meta);
  }
}

std::vector<Result<Value>> MultiCall::take_all() {
  merge_metas();
  std::vector<Result<Value>> results;
  results.reserve(state_->calls.size());
  for (const CallRef& call : state_->calls) {
    if (!call->outcome->ok()) {
      results.emplace_back(call->outcome->error());
    } else {
      results.push_back((*call->outcome)->to_value());
    }
  }
  return results;
}

std::vector<Value> MultiCall::await_resume() {
  merge_metas();
  if (state_->first_failed != nullptr) state_->first_failed->outcome->error().raise();
  std::vector<Value> values;
  for (const CallRef& call : state_->calls) values.push_back((*call->outcome)->to_value().value());
  return values;
}

}  // namespace weft
