#include "broker/dispatch/request_server.h"

#include "broker/context_access.h"
#include "lib/protocol/wire_error.h"

namespace weft {

namespace {

IdempotencyTable::Answer answer_of(const Result<Payload>& result, Context& context) {
  const ContextAccess access(context);
  return {result, access.current_meta(),
          access.response_headers().is_null() ? Payload() : Payload(access.response_headers())};
}

}  // namespace

void RequestServer::fill(Context& context, const RequestPacket& packet, const LocalAction& action,
                         Duration own_timeout) {
  ContextAccess access(context);
  access.set_action(action.full_name());
  access.set_node_id(packet.sender);
  access.set_id(packet.id);
  access.set_request_id(packet.request_id.empty() ? packet.id : packet.request_id);
  access.set_parent_id(packet.parent_id);
  access.set_caller(packet.caller);
  access.set_level(packet.level);
  access.set_tracing(packet.tracing);
  access.set_meta(packet.meta);
  access.set_headers(packet.headers);
  const Duration timeout = packet.timeout_ms ? from_ms(*packet.timeout_ms) : own_timeout;
  if (timeout > Duration::zero()) access.set_deadline(parts_.loop.now() + timeout);
  context.params = packet.params.is_absent() ? Payload(Value::object()) : packet.params;
}

void RequestServer::serve(const RequestPacket& packet) {
  const std::string& self = parts_.registry.nodes().self().id;
  if (refusing_) {
    return answer(packet.sender, packet.id, Error::service_not_available(packet.action, self), nullptr);
  }
  if (packet.stream || packet.seq) {
    if (packet.seq.value_or(0) > 0) return;  // Only the opening packet is answered.
    return answer(packet.sender, packet.id,
                  Error(ErrorClass::kClient, "Action '" + std::string(packet.action) + "' takes no stream.",
                        "STREAM_NOT_SUPPORTED"),
                  nullptr);
  }
  ActionList* list = parts_.registry.find_action(packet.action);
  // A protected action looks to other nodes like one that does not exist, whoever sent the request.
  if (list == nullptr || list->local == nullptr || !list->local->local_action->callable_from_outside()) {
    return answer(packet.sender, packet.id, Error::service_not_found(packet.action, self), nullptr);
  }
  const std::shared_ptr<LocalAction> action = list->local->local_action;  // It may remove its own service.
  const Duration own_timeout = list->timeout >= Duration::zero() ? list->timeout : parts_.request_timeout;
  std::string key = parts_.repeats != nullptr ? parts_.repeats->key_of(packet.action, packet.headers) : "";
  if (!action->is_inline()) {
    const std::size_t bytes =
        packet.params.raw(parts_.serializer).size() + packet.meta.raw(parts_.serializer).size();
    if (!parts_.load.take(bytes)) {
      return answer(
          packet.sender, packet.id,
          Error::queue_is_full(action->full_name(), self, parts_.load.count(), parts_.load.count_max()),
          nullptr);
    }
    if (!key.empty() && is_repeat(packet, key)) return parts_.load.give_back(bytes);
    return run(packet, action, own_timeout, std::move(key), bytes);
  }
  if (!key.empty() && is_repeat(packet, key)) return;

  Context context(parts_.broker, &action->service());
  fill(context, packet, *action, own_timeout);
  Result<Payload> result = Dispatcher::invoke(action->handler(), context);
  if (!result && action->has_fallback()) result = action->recover(context, result.error());
  answer(packet.sender, packet.id, result, &context);
  if (!key.empty()) parts_.repeats->finish(key, answer_of(result, context), parts_.loop.now());
}

bool RequestServer::is_repeat(const RequestPacket& packet, const std::string& key) {
  auto waiter = [this, node = std::string(packet.sender), id = std::string(packet.id)](
                    const IdempotencyTable::Answer& first) { answer(node, id, first); };
  return parts_.repeats->begin(key, parts_.loop.now(), std::move(waiter)) != IdempotencyTable::Turn::kRun;
}

void RequestServer::run(const RequestPacket& packet, const std::shared_ptr<LocalAction>& action,
                        Duration own_timeout, std::string key, std::size_t bytes) {
  std::unique_ptr<Run> run = parts_.dispatcher.make_run(&action->service());
  fill(run->context, packet, *action, own_timeout);
  ContextAccess(run->context).retain();
  run->handler = std::shared_ptr<Handler>(action, &action->handler());
  run->keep = action;
  run->queue = action->queue();

  // Answered once: by the handler, or by the deadline.
  struct Answer {
    Answer(const LocalAction& of, std::string own_key) : action(of), key(std::move(own_key)) {}
    const LocalAction& action;  // The run keeps it.
    std::string key;            // Of the table of repeats; empty without one.
    bool given = false;
    Timer deadline;
  };
  auto state = std::make_unique<Answer>(*action, std::move(key));
  if (run->context.deadline() != kNever) {
    state->deadline.set(parts_.loop, run->context.deadline(),
                        life_.guard([this, &given = state->given, node = std::string(packet.sender),
                                     id = std::string(packet.id), action, number = run->number] {
                          given = true;
                          const Error late =
                              Error::request_timeout(action->full_name(), parts_.registry.nodes().self().id);
                          Context* context = parts_.dispatcher.context_of(number);
                          if (context != nullptr && action->has_fallback()) {
                            answer(node, id, action->recover(*context, late), context);
                          } else {
                            answer(node, id, late, nullptr);
                          }
                          parts_.dispatcher.request_stop(number);  // Last: it may end the run.
                        }));
  }
  run->done = [this, bytes, state = std::move(state)](Run& ended, Result<Payload> result) {
    parts_.load.give_back(bytes);
    state->deadline.cancel();
    if (!state->given) {  // Else the caller has given up.
      if (!result && state->action.has_fallback())
        result = state->action.recover(ended.context, result.error());
      answer(ended.context.node_id(), ended.context.id(), result, &ended.context);
    }
    // In any case: it may ask again.
    if (!state->key.empty())
      parts_.repeats->finish(state->key, answer_of(result, ended.context), parts_.loop.now());
  };
  parts_.dispatcher.start(std::move(run), action->blocking());
}

void RequestServer::answer(std::string_view node, std::string_view id,
                           const IdempotencyTable::Answer& answer) {
  ResponsePacket response;
  response.id = id;
  response.success = answer.result.ok();
  response.meta = answer.meta;
  response.headers = answer.headers.is_absent() ? Payload(Value::object()) : answer.headers;
  if (answer.result) {
    response.data = *answer.result;
  } else {
    response.data = Payload(Value());
    response.error =
        Payload(error_to_wire(answer.result.error(), parts_.registry.nodes().self().id, parts_.send_stack));
  }
  parts_.sender.send_response(node, response);
}

void RequestServer::answer(std::string_view node, std::string_view id, const Result<Payload>& result,
                           const Context* context) {
  ResponsePacket response;
  response.id = id;
  response.success = result.ok();
  if (context != nullptr) {
    const ContextAccess access(const_cast<Context&>(*context));
    response.meta = access.current_meta();
    response.headers =
        access.response_headers().is_null() ? Payload(Value::object()) : Payload(access.response_headers());
  } else {
    response.headers_null = true;
  }
  if (result) {
    response.data = *result;
  } else {
    response.data = Payload(Value());
    response.error =
        Payload(error_to_wire(result.error(), parts_.registry.nodes().self().id, parts_.send_stack));
  }
  parts_.sender.send_response(node, response);
}

}  // namespace weft
