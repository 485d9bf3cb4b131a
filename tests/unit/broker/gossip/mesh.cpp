#include "tests/unit/broker/gossip/mesh.h"

#include <algorithm>

#include "lib/protocol/serializer.h"

namespace weft::test {

MeshNode& Mesh::start(const std::string& id, Kind kind, const ServiceNames& services) {
  Slot& slot = nodes_[id];
  if (slot.port == 0) slot.port = static_cast<std::uint16_t>(7000 + nodes_.size());
  ++slot.incarnation;
  slot.services = services;
  const MeshNodeConfig config{id, id + "#" + std::to_string(slot.incarnation), slot.port, period_,
                              slot.port * 1000ULL + static_cast<std::uint64_t>(slot.incarnation)};
  slot.process = kind == Kind::kWeft ? make_weft_node(config) : make_moleculer_node(config);
  slot.process->set_services(services, now_);
  slot.process->start(now_);
  flush(id);
  return *slot.process;
}

void Mesh::crash(const std::string& id) {
  nodes_.at(id).process.reset();
  std::vector<std::string> linked;
  for (const auto& [from, to] : links_) {
    if (to == id) linked.push_back(from);
  }
  std::erase_if(links_, [&](const auto& link) { return link.first == id || link.second == id; });
  for (const std::string& who : linked) report_loss(who, id, false);
}

void Mesh::sight(const std::string& who, const std::string& id) {
  node(who).sighted(id, {"127.0.0.1", nodes_.at(id).port}, now_);
  flush(who);
}

void Mesh::set_services(const std::string& id, const ServiceNames& services) {
  nodes_.at(id).services = services;
  node(id).set_services(services, now_);
  flush(id);
}

void Mesh::inject(const std::string& to, PacketType type, std::string_view sender, const Value& body) {
  node(to).receive(type, sender, body, "127.0.0.1", now_);
  flush(to);
}

void Mesh::at(Instant when, std::function<void()> what) {
  queue_.emplace(when, std::move(what));
}

void Mesh::report_loss(const std::string& who, const std::string& lost, bool unexpected) {
  const int incarnation = nodes_.at(who).incarnation;
  at(now_ + kLatency, [this, who, lost, unexpected, incarnation] {
    const Slot& slot = nodes_.at(who);
    if (slot.process == nullptr || slot.incarnation != incarnation) return;
    slot.process->lost(lost, unexpected, now_);
    flush(who);
  });
}

void Mesh::flush(const std::string& id) {
  for (const MeshNode::Packet& packet : node(id).take_packets()) send(id, packet);
}

void Mesh::send(const std::string& from, const MeshNode::Packet& packet) {
  const SocketAddress address = node(from).address_of(packet.to);
  const auto target = nodes_.find(packet.to);
  const bool is_reachable = target != nodes_.end() && target->second.process != nullptr &&
                            target->second.port == address.port && address.host != "unresolvable";
  if (!is_reachable) {
    report_loss(from, packet.to, true);
    return;
  }
  if (links_.emplace(from, packet.to).second) {
    deliver(from, packet.to, PacketType::kGossipHello, node(from).hello());
  }
  deliver(from, packet.to, packet.type, packet.body);
}

void Mesh::deliver(const std::string& from, const std::string& to, PacketType type, const Value& body) {
  const int incarnation = nodes_.at(to).incarnation;
  const Value received = parse_json(to_json(body)).value();
  at(now_ + kLatency, [this, from, to, type, received, incarnation] {
    const Slot& slot = nodes_.at(to);
    if (slot.process == nullptr || slot.incarnation != incarnation) return;
    deliveries_.push_back({now_, from, to, type, received});
    slot.process->receive(type, from, received, "127.0.0.1", now_);
    flush(to);
  });
}

void Mesh::run_for(Duration span) {
  (void)run_until([] { return false; }, span);
}

std::optional<Duration> Mesh::run_until(const std::function<bool()>& done, Duration limit) {
  const Instant begin = now_;
  const Instant end = now_ + limit;
  while (!done()) {
    Instant next = queue_.empty() ? kNever : queue_.begin()->first;
    for (const auto& [id, slot] : nodes_) {
      if (slot.process != nullptr) next = std::min(next, slot.process->next_tick());
    }
    if (next > end) {
      now_ = end;
      return done() ? std::optional(now_ - begin) : std::nullopt;
    }
    now_ = std::max(now_, next);
    if (!queue_.empty() && queue_.begin()->first <= now_) {
      const auto what = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
      what();
      continue;
    }
    for (const auto& [id, slot] : nodes_) {
      if (slot.process == nullptr || slot.process->next_tick() > now_) continue;
      slot.process->tick(now_);
      flush(id);
    }
  }
  return now_ - begin;
}

bool Mesh::sees(const std::string& who, const std::string& id, const ServiceNames& services) const {
  const View view = nodes_.at(who).process->view();
  const auto found = view.find(id);
  return found != view.end() && found->second == services;
}

bool Mesh::converged() const {
  for (const auto& [who, slot] : nodes_) {
    if (slot.process == nullptr) continue;
    View truth;
    for (const auto& [id, other] : nodes_) {
      if (id != who && other.process != nullptr) truth[id] = other.services;
    }
    if (slot.process->view() != truth) return false;
  }
  return true;
}

std::size_t Mesh::packets(PacketType type) const {
  return static_cast<std::size_t>(std::count_if(deliveries_.begin(), deliveries_.end(),
                                                [&](const Delivery& d) { return d.type == type; }));
}

}  // namespace weft::test
