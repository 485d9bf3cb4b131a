#include "lib/transport/transporter.h"

namespace weft {

namespace {
Error cannot_balance(std::string_view name) {
  return Error(ErrorClass::kBase, "The transporter " + std::string(name) + " does not balance by itself.",
               "NOT_SUPPORTED");
}
}  // namespace

void Transporter::probe(std::string_view, BytesView) {}
void Transporter::subscribe_balanced(std::span<const std::string>, std::span<const BalancedEvent>) {}
Result<> Transporter::publish_balanced_request(std::string_view, BytesView) {
  return cannot_balance(traits().name);
}
Result<> Transporter::publish_balanced_event(std::string_view, std::string_view, BytesView) {
  return cannot_balance(traits().name);
}
void Transporter::learn_address(std::string_view, const SocketAddress&) {}
void Transporter::forget_node(std::string_view) {}
void Transporter::set_greeting(BytesView) {}
SocketAddress Transporter::listen_address() const {
  return {};
}

}  // namespace weft
