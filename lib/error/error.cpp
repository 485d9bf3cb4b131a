#include "lib/error/error.h"

#include <array>

namespace weft {

namespace {

struct ClassRow {
  std::string_view name;
  int code;
  std::string_view type;
  bool retryable;
  bool from_data;  // A receiver rebuilds message, code and type from `data` alone.
};

// In the order of ErrorClass.
constexpr std::array<ClassRow, 19> kClasses = {{
    {"MoleculerError", 500, "", false, false},
    {"MoleculerRetryableError", 500, "", true, false},
    {"MoleculerServerError", 500, "", true, false},
    {"MoleculerClientError", 400, "", false, false},
    {"ValidationError", 422, "VALIDATION_ERROR", false, false},
    {"ServiceNotFoundError", 404, "SERVICE_NOT_FOUND", true, true},
    {"ServiceNotAvailableError", 404, "SERVICE_NOT_AVAILABLE", true, true},
    {"RequestTimeoutError", 504, "REQUEST_TIMEOUT", true, true},
    {"RequestSkippedError", 514, "REQUEST_SKIPPED", false, true},
    {"RequestRejectedError", 503, "REQUEST_REJECTED", true, true},
    {"QueueIsFullError", 429, "QUEUE_FULL", true, true},
    {"MaxCallLevelError", 500, "MAX_CALL_LEVEL", false, true},
    {"ServiceSchemaError", 500, "SERVICE_SCHEMA_ERROR", false, false},
    {"BrokerOptionsError", 500, "BROKER_OPTIONS_ERROR", false, false},
    {"GracefulStopTimeoutError", 500, "GRACEFUL_STOP_TIMEOUT", false, true},
    {"ProtocolVersionMismatchError", 500, "PROTOCOL_VERSION_MISMATCH", false, true},
    {"InvalidPacketDataError", 500, "INVALID_PACKET_DATA", false, true},
    {"BrokerDisconnectedError", 502, "BAD_GATEWAY", true, false},
    {"Error", 0, "", false, false},
}};

const ClassRow& row(ErrorClass error_class) {
  return kClasses[static_cast<std::size_t>(error_class)];
}

const Value kNoData;

std::string on_node(std::string_view node_id) {
  return node_id.empty() ? std::string() : " on '" + std::string(node_id) + "' node";
}

Value action_data(std::string_view action, std::string_view node_id) {
  Value data{{"action", action}};
  if (!node_id.empty()) data.set("nodeID", node_id);
  return data;
}

// The message of a class that is rebuilt from its data.
std::string message_of(ErrorClass error_class, const Value& data) {
  const std::string action(data["action"].str_or({}));
  const std::string node = on_node(data["nodeID"].str_or({}));
  switch (error_class) {
    case ErrorClass::kServiceNotFound:
      if (!action.empty()) return "Service '" + action + "' is not found" + node + ".";
      if (data["service"].is_string()) {
        std::string name(data["service"].str());
        if (data["version"].is_string()) name = std::string(data["version"].str()) + "." + name;
        if (data["version"].is_integer()) name = "v" + std::to_string(data["version"].i64_or(0)) + "." + name;
        return "Service '" + name + "' is not found.";
      }
      return "Service is not found.";
    case ErrorClass::kServiceNotAvailable:
      return "Service '" + action + "' is not available" + node + ".";
    case ErrorClass::kRequestTimeout:
      return "Request is timed out when call '" + action + "' action" + node + ".";
    case ErrorClass::kRequestSkipped:
      return "Calling '" + action + "' is skipped because the caller's timeout has run out" + node + ".";
    case ErrorClass::kRequestRejected:
      return "Request is rejected when call '" + action + "' action" + node +
             ": the node was lost or is stopping.";
    case ErrorClass::kQueueIsFull: {
      const std::string subject(data["event"].str_or(action));
      return "Queue is full: '" + subject + "' is refused" + node + ".";
    }
    case ErrorClass::kMaxCallLevel:
      return "Request level has reached the limit (" + std::to_string(data["level"].i64_or(0)) + ")" + node +
             ".";
    case ErrorClass::kGracefulStopTimeout:
      return "Running calls did not end before the shutdown timeout.";
    case ErrorClass::kProtocolVersionMismatch:
      return "Protocol version mismatch.";
    case ErrorClass::kInvalidPacketData:
      return "Invalid packet data.";
    default:
      return {};
  }
}

Error from_data(ErrorClass error_class, Value data) {
  std::string message = message_of(error_class, data);
  return Error(error_class, std::move(message), {}, std::move(data));
}

ErrorClass class_of(std::string_view name) {
  for (std::size_t i = 0; i + 1 < kClasses.size(); ++i) {
    if (kClasses[i].name == name) return static_cast<ErrorClass>(i);
  }
  return ErrorClass::kForeign;
}

}  // namespace

Error::Error(ErrorClass error_class, std::string message, std::string_view type, std::optional<Value> data) {
  const ClassRow& defaults = row(error_class);
  auto detail = std::make_shared<Detail>();
  detail->error_class = error_class;
  detail->name = defaults.name;
  detail->message = std::move(message);
  detail->code = defaults.code;
  const std::string_view chosen = type.empty() ? defaults.type : type;
  if (!chosen.empty()) detail->type = Value(chosen);
  detail->data = std::move(data);
  detail->retryable = defaults.retryable;
  detail_ = std::move(detail);
}

const Value& Error::data() const {
  return detail_->data ? *detail_->data : kNoData;
}

Error Error::with_code(Value code) const {
  Detail detail = *detail_;
  detail.code = std::move(code);
  return Error(std::move(detail));
}

Error Error::with_node_id(std::string node_id) const {
  Detail detail = *detail_;
  detail.node_id = std::move(node_id);
  return Error(std::move(detail));
}

Error Error::with_data(Value data) const {
  Detail detail = *detail_;
  detail.data = std::move(data);
  return Error(std::move(detail));
}

Error Error::with_retryable(bool retryable) const {
  Detail detail = *detail_;
  detail.retryable = retryable;
  return Error(std::move(detail));
}

std::string Error::to_string() const {
  std::string text = name() + ": " + message();
  std::string more;
  const auto add = [&more](std::string part) { more += (more.empty() ? "" : " ") + std::move(part); };
  if (detail_->code.is_integer()) add(std::to_string(detail_->code.i64_or(0)));
  if (detail_->code.is_string()) add(std::string(detail_->code.str()));
  if (!type().empty()) add(std::string(type()));
  if (!node_id().empty()) add("node " + node_id());
  return more.empty() ? text : text + " (" + more + ")";
}

void Error::raise() const {
  switch (error_class()) {
    case ErrorClass::kRetryable:
      throw RetryableError(*this);
    case ErrorClass::kServer:
      throw ServerError(*this);
    case ErrorClass::kClient:
      throw ClientError(*this);
    case ErrorClass::kValidation:
      throw ValidationError(*this);
    case ErrorClass::kServiceNotFound:
      throw ServiceNotFoundError(*this);
    case ErrorClass::kServiceNotAvailable:
      throw ServiceNotAvailableError(*this);
    case ErrorClass::kRequestTimeout:
      throw RequestTimeoutError(*this);
    case ErrorClass::kRequestSkipped:
      throw RequestSkippedError(*this);
    case ErrorClass::kRequestRejected:
      throw RequestRejectedError(*this);
    case ErrorClass::kQueueIsFull:
      throw QueueIsFullError(*this);
    case ErrorClass::kMaxCallLevel:
      throw MaxCallLevelError(*this);
    case ErrorClass::kServiceSchema:
      throw ServiceSchemaError(*this);
    case ErrorClass::kBrokerOptions:
      throw BrokerOptionsError(*this);
    case ErrorClass::kGracefulStopTimeout:
      throw GracefulStopTimeoutError(*this);
    case ErrorClass::kProtocolVersionMismatch:
      throw ProtocolVersionMismatchError(*this);
    case ErrorClass::kInvalidPacketData:
      throw InvalidPacketDataError(*this);
    case ErrorClass::kBrokerDisconnected:
      throw BrokerDisconnectedError(*this);
    case ErrorClass::kBase:
    case ErrorClass::kForeign:
      break;
  }
  throw Exception(*this);
}

Error Error::service_not_found(std::string_view action, std::string_view node_id) {
  return from_data(ErrorClass::kServiceNotFound, action_data(action, node_id));
}
Error Error::service_not_available(std::string_view action, std::string_view node_id) {
  return from_data(ErrorClass::kServiceNotAvailable, action_data(action, node_id));
}
Error Error::request_timeout(std::string_view action, std::string_view node_id) {
  return from_data(ErrorClass::kRequestTimeout, action_data(action, node_id));
}
Error Error::request_skipped(std::string_view action, std::string_view node_id) {
  return from_data(ErrorClass::kRequestSkipped, action_data(action, node_id));
}
Error Error::request_rejected(std::string_view action, std::string_view node_id) {
  return from_data(ErrorClass::kRequestRejected, action_data(action, node_id));
}
Error Error::queue_is_full(std::string_view action, std::string_view node_id, std::size_t size,
                           std::size_t limit) {
  Value data = action_data(action, node_id);
  data.set("size", size);
  data.set("limit", limit);
  return from_data(ErrorClass::kQueueIsFull, std::move(data));
}
Error Error::max_call_level(std::string_view node_id, int level) {
  return from_data(ErrorClass::kMaxCallLevel, Value{{"nodeID", node_id}, {"level", level}});
}
Error Error::broker_options(std::string what, Value data) {
  return Error(ErrorClass::kBrokerOptions, std::move(what), {},
               data.is_null() ? std::nullopt : std::optional(std::move(data)));
}
Error Error::service_schema(std::string what, Value data) {
  return Error(ErrorClass::kServiceSchema, std::move(what), {},
               data.is_null() ? std::nullopt : std::optional(std::move(data)));
}

Error Error::from_wire(Detail received, std::string_view sender) {
  received.error_class = class_of(received.name);
  if (received.node_id.empty()) received.node_id = sender;
  if (received.error_class == ErrorClass::kForeign) return Error(std::move(received));
  const ClassRow& defaults = row(received.error_class);
  if (defaults.from_data) {
    // A peer may leave data out; then its own words are the best there is.
    if (received.data && received.data->is_object()) {
      received.message = message_of(received.error_class, *received.data);
    } else if (received.message.empty()) {
      received.message = message_of(received.error_class, Value());
    }
    received.code = defaults.code;
    received.type = Value(defaults.type);
    return Error(std::move(received));
  }
  const bool code_is_fixed = received.error_class == ErrorClass::kValidation ||
                             received.error_class == ErrorClass::kServiceSchema ||
                             received.error_class == ErrorClass::kBrokerOptions;
  const bool code_is_falsy = received.code.is_null() ||
                             (received.code.is_number() && received.code.f64() == 0) ||
                             (received.code.is_string() && received.code.str().empty());
  if (code_is_fixed || (code_is_falsy && received.error_class != ErrorClass::kBrokerDisconnected)) {
    received.code = defaults.code;
  }
  if (code_is_fixed && received.type.str_or({}).empty()) received.type = Value(defaults.type);
  return Error(std::move(received));
}

Error Error::from_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Exception& error) {
    return error.error();
  } catch (const std::exception& error) {
    return Error(ErrorClass::kBase, error.what());
  } catch (const char* text) {
    return Error(ErrorClass::kBase, text);
  } catch (const std::string& text) {
    return Error(ErrorClass::kBase, text);
  } catch (...) {
    return Error(ErrorClass::kBase, "The handler threw something that is no std::exception.");
  }
}

}  // namespace weft
