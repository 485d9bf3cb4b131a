#include "broker/discovery/bus_discovery.h"

#include <utility>

namespace weft {

BusDiscovery::BusDiscovery(Parts parts)
    : parts_(parts),
      monitor_(parts_.membership.nodes(),
               {.interval = parts_.options.interval,
                .timeout = parts_.options.timeout,
                .clean_offline_nodes = parts_.options.clean_offline_nodes},
               parts_.random, parts_.loop.now()) {}

void BusDiscovery::start() {
  (void)parts_.sender.send_control(PacketType::kDiscover, {}, {});
  (void)parts_.system.cpu_percent();  // The first reading only starts the count.
  carry_out();
}

void BusDiscovery::announce() {
  announced_ = true;
  send_info({});
}

void BusDiscovery::stop(bool goodbye) {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  if (goodbye) (void)parts_.sender.send_control(PacketType::kDisconnect, {}, {});
}

void BusDiscovery::on_reconnected() {
  if (stopped_) return;
  // Both sides may have changed meanwhile.
  if (announced_) send_info({});
  (void)parts_.sender.send_control(PacketType::kDiscover, {}, {});
}

void BusDiscovery::send_info(std::string_view node) {
  (void)parts_.sender.send_control(PacketType::kInfo, node, parts_.membership.self_info());
}

void BusDiscovery::on_control(PacketType type, std::string_view sender, const Value& body, std::string_view) {
  if (stopped_) return;
  switch (type) {
    case PacketType::kDiscover:
      // Before there is something to say, an answer could only take from a namesake what it offers.
      if (announced_) send_info(sender);
      return;
    case PacketType::kInfo:
      return parts_.membership.apply_info(sender, body);
    case PacketType::kDisconnect:
      return parts_.membership.set_offline(sender, false);
    case PacketType::kHeartbeat:
      monitor_.receive(sender, body, parts_.loop.now());
      return carry_out();
    default:
      return;  // Gossip has no place on a bus.
  }
}

Value BusDiscovery::heartbeat() const {
  const std::optional<int> cpu = parts_.membership.nodes().self().cpu;
  return Value{{"cpu", cpu ? Value(*cpu) : Value()}};
}

// A heartbeat more, with a field that others pass over.
void BusDiscovery::tell_suspects(const std::vector<std::string>& nodes) {
  if (stopped_ || nodes.empty()) return;
  Value body = heartbeat();
  body.set("suspects", nodes);
  (void)parts_.sender.send_control(PacketType::kHeartbeat, {}, std::move(body));
}

void BusDiscovery::tick() {
  monitor_.tick(parts_.loop.now());
  carry_out();
}

void BusDiscovery::carry_out() {
  const HeartbeatMonitor::Output output = monitor_.take_output();
  if (output.send_heartbeat) {
    const int cpu = parts_.system.cpu_percent();
    parts_.membership.nodes().self().cpu = cpu >= 0 ? std::optional(cpu) : std::nullopt;
    (void)parts_.sender.send_control(PacketType::kHeartbeat, {}, heartbeat());
  }
  for (const std::string& node : output.discover)
    (void)parts_.sender.send_control(PacketType::kDiscover, node, {});
  for (const std::string& node : output.timed_out) parts_.membership.set_offline(node, true);
  for (const std::string& node : output.forget) parts_.membership.forget(node);
  if (monitor_.next_tick() != kNever) timer_.set(parts_.loop, monitor_.next_tick(), [this] { tick(); });
}

}  // namespace weft
