#include "lib/protocol/wire_error.h"

namespace weft {

Value error_to_wire(const Error& error, std::string_view node_id, bool with_stack) {
  const Error::Detail& detail = error.detail();
  Value wire{{"name", detail.name},
             {"message", detail.message},
             {"nodeID", detail.node_id.empty() ? std::string(node_id) : detail.node_id}};
  if (!detail.code.is_null()) wire.set("code", detail.code);
  if (!detail.type.is_null()) wire.set("type", detail.type);
  if (detail.retryable) wire.set("retryable", *detail.retryable);
  // Its first line costs no secret and lets a JavaScript peer show where the error came from.
  const std::string first_line = detail.name + ": " + detail.message;
  wire.set("stack", with_stack && !detail.stack.empty() ? detail.stack : first_line);
  if (detail.data) wire.set("data", *detail.data);
  return wire;
}

Error error_from_wire(const Payload& error, std::string_view sender) {
  Error::Detail detail;
  const Result<Value> decoded = error.to_value();
  if (!decoded || !(*decoded).is_object()) {
    detail.name = "MoleculerError";
    detail.message = "The node answered with a failure without an error object.";
    return Error::from_wire(std::move(detail), sender);
  }
  const Value& wire = *decoded;
  detail.name = wire["name"].str_or("Error");
  detail.message = wire["message"].str_or({});
  if (wire["code"].is_number() || wire["code"].is_string()) detail.code = wire["code"];
  if (wire["type"].is_string()) detail.type = wire["type"];
  if (const Value* data = wire.find("data")) detail.data = *data;
  if (wire["retryable"].is_bool()) detail.retryable = wire["retryable"].boolean();
  detail.node_id = wire["nodeID"].str_or({});
  detail.stack = wire["stack"].str_or({});
  return Error::from_wire(std::move(detail), sender);
}

}  // namespace weft
