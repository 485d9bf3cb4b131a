#pragma once

#include <memory>

#include "lib/loop/event_loop.h"
#include "lib/transport/transporter.h"
#include "transporters/memory/memory_bus.h"

namespace weft {

// Carries frames between the brokers of one process, over a MemoryBus they share.
//
// on_undelivered() comes for a frame sent with a correlation to a node that is not on the bus.
// Thread: loop thread only; the brokers may run on loops of different threads.
class MemoryTransporter final : public Transporter {
 public:
  MemoryTransporter(EventLoop& loop, std::shared_ptr<MemoryBus> bus);
  ~MemoryTransporter() override;
  MemoryTransporter(const MemoryTransporter&) = delete;
  MemoryTransporter& operator=(const MemoryTransporter&) = delete;

  [[nodiscard]] Traits traits() const override;
  void start(const Identity& identity, Listener& listener, Completion done) override;
  void stop(Completion done) override;
  [[nodiscard]] Result<> send(std::string_view node, PacketType type, BytesView payload,
                              std::string_view correlation) override;
  [[nodiscard]] Result<> broadcast(PacketType type, BytesView payload) override;
  void probe(std::string_view node, BytesView pong) override;
  void subscribe_balanced(std::span<const std::string> actions,
                          std::span<const BalancedEvent> events) override;
  [[nodiscard]] Result<> publish_balanced_request(std::string_view action, BytesView payload) override;
  [[nodiscard]] Result<> publish_balanced_event(std::string_view group, std::string_view event,
                                                BytesView payload) override;

 private:
  void leave();

  EventLoop& loop_;
  const std::shared_ptr<MemoryBus> bus_;
  MemoryBus::MemberPtr member_;  // Null unless started.
};

}  // namespace weft
