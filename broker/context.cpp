#include "broker/context.h"

#include "broker/broker.h"
#include "broker/service.h"

namespace weft {

Value& Context::meta() {
  if (!meta_) {
    auto sent = meta_source_.to_value();  // What a peer sent need not be an object, or a value at all.
    meta_ = sent && sent->is_object() ? *std::move(sent) : Value::object();
  }
  return *meta_;
}

const Value& Context::meta() const {
  return const_cast<Context*>(this)->meta();
}

std::string_view Context::id() {
  if (id_.empty()) {
    made_id_ = broker_->make_id();
    id_ = made_id_;
  }
  return id_;
}

std::string_view Context::request_id() {
  if (request_id_.empty()) request_id_ = id();
  return request_id_;
}

std::vector<std::string> Context::event_groups() const {
  std::vector<std::string> groups;
  for (const Value& group : event_groups_.value().items()) {
    if (group.is_string()) groups.emplace_back(group.str());
  }
  return groups;
}

std::optional<Duration> Context::remaining() const {
  if (deadline_ == kNever) return std::nullopt;
  return deadline_ - broker_->now();
}

std::stop_token Context::stop_token() {
  if (!stop_.stop_possible()) {
    stop_ = std::stop_source();
    if (stopped_) stop_.request_stop();
  }
  return stop_.get_token();
}

const Logger& Context::log() const {
  return service_ != nullptr ? service_->log() : broker_->log();
}

CallRef Context::start_call(std::string_view action, Params&& sent, const CallOptions& options) {
  return broker_->start_call(action, std::move(sent), options, this);
}

MultiCall Context::mcall(Calls calls) {
  return broker_->start_calls(std::move(calls.list), this);
}

void Context::emit(std::string_view event, Params payload, const EventOptions& options) {
  broker_->send_event(EventType::kEmit, event, std::move(payload), options, this);
}

void Context::broadcast(std::string_view event, Params payload, const EventOptions& options) {
  broker_->send_event(EventType::kBroadcast, event, std::move(payload), options, this);
}

void Context::retain() {
  params.retain();
  meta_source_.retain();
  headers_.retain();
  event_groups_.retain();
  std::string_view* const views[] = {&id_, &request_id_, &parent_id_, &caller_, &node_id_, &action_, &event_};
  std::string storage;
  for (const std::string_view* view : views) storage += *view;
  storage_ = std::move(storage);
  std::size_t start = 0;
  for (std::string_view* view : views) {
    *view = std::string_view(storage_).substr(start, view->size());
    start += view->size();
  }
}

}  // namespace weft
