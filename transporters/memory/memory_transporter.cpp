#include "transporters/memory/memory_transporter.h"

#include <utility>

namespace weft {

namespace {
Error not_connected() {
  return Error(ErrorClass::kBrokerDisconnected, "The memory transporter is not started.");
}
}  // namespace

MemoryTransporter::MemoryTransporter(EventLoop& loop, std::shared_ptr<MemoryBus> bus)
    : loop_(loop), bus_(std::move(bus)) {
  WEFT_ASSERT(bus_ != nullptr);
}

MemoryTransporter::~MemoryTransporter() {
  leave();
}

Transporter::Traits MemoryTransporter::traits() const {
  return {.name = "Memory", .is_bus = true, .can_balance = true, .payload_bytes_max = 0};
}

void MemoryTransporter::start(const Identity& identity, Listener& listener, Completion done) {
  WEFT_ASSERT(loop_.is_current() && member_ == nullptr);
  // Posted before joining, so that it runs before the first message.
  loop_.post([done = std::move(done)]() mutable { done({}); });
  member_ = bus_->join(identity, loop_, listener);
}

void MemoryTransporter::stop(Completion done) {
  WEFT_ASSERT(loop_.is_current());
  leave();
  loop_.post([done = std::move(done)]() mutable { done({}); });
}

void MemoryTransporter::leave() {
  if (member_ != nullptr) bus_->leave(std::exchange(member_, nullptr));
}

Result<> MemoryTransporter::send(std::string_view node, PacketType type, BytesView payload,
                                 std::string_view correlation) {
  if (member_ == nullptr) return not_connected();
  return bus_->send(member_, node, type, payload, correlation);
}

Result<> MemoryTransporter::broadcast(PacketType type, BytesView payload) {
  if (member_ == nullptr) return not_connected();
  bus_->broadcast(member_, type, payload);
  return {};
}

void MemoryTransporter::probe(std::string_view node, BytesView) {
  if (member_ != nullptr) bus_->probe(member_, node);
}

void MemoryTransporter::subscribe_balanced(std::span<const std::string> actions,
                                           std::span<const BalancedEvent> events) {
  if (member_ != nullptr) bus_->subscribe_balanced(member_, actions, events);
}

Result<> MemoryTransporter::publish_balanced_request(std::string_view action, BytesView payload) {
  if (member_ == nullptr) return not_connected();
  return bus_->publish_request(member_, action, payload);
}

Result<> MemoryTransporter::publish_balanced_event(std::string_view group, std::string_view event,
                                                   BytesView payload) {
  if (member_ == nullptr) return not_connected();
  return bus_->publish_event(member_, group, event, payload);
}

}  // namespace weft
