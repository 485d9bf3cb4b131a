#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "lib/transport/transporter.h"

namespace weft::swarm {

// Stands between a broker and its real transporter, and reports each request and event that leaves for a
// node.
class WatchedTransporter final : public Transporter {
 public:
  using OnSend = std::function<void(std::string_view node, PacketType type)>;

  WatchedTransporter(std::unique_ptr<Transporter> inner, OnSend on_send)
      : inner_(std::move(inner)), on_send_(std::move(on_send)) {}

  [[nodiscard]] Traits traits() const override { return inner_->traits(); }
  void start(const Identity& identity, Listener& listener, Completion done) override {
    inner_->start(identity, listener, std::move(done));
  }
  void stop(Completion done) override { inner_->stop(std::move(done)); }
  [[nodiscard]] Result<> send(std::string_view node, PacketType type, BytesView payload,
                              std::string_view correlation) override {
    if (type == PacketType::kRequest || type == PacketType::kEvent) on_send_(node, type);
    return inner_->send(node, type, payload, correlation);
  }
  [[nodiscard]] Result<> broadcast(PacketType type, BytesView payload) override {
    return inner_->broadcast(type, payload);
  }
  void probe(std::string_view node, BytesView pong) override { inner_->probe(node, pong); }
  void subscribe_balanced(std::span<const std::string> actions,
                          std::span<const BalancedEvent> events) override {
    inner_->subscribe_balanced(actions, events);
  }
  [[nodiscard]] Result<> publish_balanced_request(std::string_view action, BytesView payload) override {
    return inner_->publish_balanced_request(action, payload);
  }
  [[nodiscard]] Result<> publish_balanced_event(std::string_view group, std::string_view event,
                                                BytesView payload) override {
    return inner_->publish_balanced_event(group, event, payload);
  }
  void learn_address(std::string_view node, const SocketAddress& address) override {
    inner_->learn_address(node, address);
  }
  void forget_node(std::string_view node) override { inner_->forget_node(node); }
  void set_greeting(BytesView payload) override { inner_->set_greeting(payload); }
  [[nodiscard]] SocketAddress listen_address() const override { return inner_->listen_address(); }

 private:
  std::unique_ptr<Transporter> inner_;
  OnSend on_send_;
};

}  // namespace weft::swarm
