#include "broker/dispatch/request_server.h"

#include "broker/context_access.h"
#include "lib/protocol/wire_error.h"

namespace weft {

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
  if (!list->local->available) {
    return answer(packet.sender, packet.id, Error::service_not_available(packet.action, self), nullptr);
  }
  const std::shared_ptr<LocalAction> action = list->local->local_action;  // It may remove its own service.
  const Duration own_timeout = list->timeout >= Duration::zero() ? list->timeout : parts_.request_timeout;
  if (!action->is_inline()) return run(packet, action, own_timeout);

  Context context(parts_.broker, &action->service());
  fill(context, packet, *action, own_timeout);
  const Result<Payload> result = Dispatcher::invoke(action->handler(), context);
  answer(packet.sender, packet.id, result, &context);
}

void RequestServer::run(const RequestPacket& packet, const std::shared_ptr<LocalAction>& action,
                        Duration own_timeout) {
  const std::size_t bytes =
      packet.params.raw(parts_.serializer).size() + packet.meta.raw(parts_.serializer).size();
  if (!parts_.load.take(bytes)) {
    return answer(packet.sender, packet.id,
                  Error::queue_is_full(action->full_name(), parts_.registry.nodes().self().id,
                                       parts_.load.count(), parts_.load.count_max()),
                  nullptr);
  }
  std::unique_ptr<Run> run = parts_.dispatcher.make_run(&action->service());
  fill(run->context, packet, *action, own_timeout);
  ContextAccess(run->context).retain();
  run->handler = std::shared_ptr<Handler>(action, &action->handler());
  run->keep = action;

  // Answered once: by the handler, or by the deadline.
  struct Answer {
    bool given = false;
    Timer deadline;
  };
  auto state = std::make_unique<Answer>();
  if (run->context.deadline() != kNever) {
    state->deadline.set(parts_.loop, run->context.deadline(),
                        life_.guard([this, &given = state->given, node = std::string(packet.sender),
                                     id = std::string(packet.id), name = action->full_name()] {
                          given = true;
                          answer(node, id, Error::request_timeout(name, parts_.registry.nodes().self().id),
                                 nullptr);
                        }));
  }
  run->done = [this, bytes, state = std::move(state)](Run& ended, Result<Payload> result) {
    parts_.load.give_back(bytes);
    state->deadline.cancel();
    if (state->given) return;  // The caller has given up.
    answer(ended.context.node_id(), ended.context.id(), result, &ended.context);
  };
  parts_.dispatcher.start(std::move(run), action->blocking());
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
