#include "broker/discovery/pinger.h"

#include <cmath>

namespace weft {

Task<std::optional<Pong>> Pinger::ping(std::string node_id, std::string id, Duration timeout) {
  struct Forget {  // However this ends, the frame being destroyed included.
    std::map<std::string, Sent, std::less<>>& sent;
    const std::string& id;
    ~Forget() { sent.erase(id); }
  };
  const Sent& own = sent_.emplace(id, Sent{loop_.now(), true, std::nullopt}).first->second;
  const Forget forget{sent_, id};
  Value body{{"id", id}, {"time", loop_.wall_ms()}};
  if (stopped_ || !sender_.send_control(PacketType::kPing, node_id, std::move(body))) co_return std::nullopt;
  const Instant deadline = loop_.now() + timeout;
  while (!own.answer) {
    const bool woken = co_await answered_.wait(loop_, deadline);
    if (!woken || stopped_) co_return std::nullopt;
  }
  co_return own.answer;
}

void Pinger::probe(std::string_view node_id, std::string_view id) {
  forget_old();
  sent_.emplace(id, Sent{loop_.now(), false, std::nullopt});
  (void)sender_.send_control(PacketType::kPing, node_id, Value{{"id", id}, {"time", loop_.wall_ms()}});
}

void Pinger::forget_old() {
  static constexpr Duration kOld = std::chrono::seconds(30);
  std::erase_if(sent_, [this](const auto& entry) {
    return !entry.second.awaited && loop_.now() - entry.second.at > kOld;
  });
}

void Pinger::stop() {
  stopped_ = true;
  answered_.notify();
}

void Pinger::on_ping(std::string_view sender, const Value& body) {
  Value pong{{"id", body["id"]}, {"time", body["time"]}, {"arrived", loop_.wall_ms()}};
  (void)sender_.send_control(PacketType::kPong, sender, std::move(pong));
}

std::optional<Pong> Pinger::on_pong(std::string_view sender, const Value& body) {
  if (!body["time"].is_number() || !body["arrived"].is_number()) return std::nullopt;
  const double now = static_cast<double>(loop_.wall_ms());
  const auto sent = sent_.find(body["id"].str_or({}));
  Pong pong;
  pong.node_id = sender;
  pong.id = body["id"].str_or({});
  // Our own clock is finer than the milliseconds of the packet.
  pong.elapsed_ms = sent != sent_.end() ? to_ms(loop_.now() - sent->second.at) : now - body["time"].f64();
  pong.time_diff_ms = std::round(now - body["arrived"].f64() - pong.elapsed_ms / 2);
  if (sent == sent_.end()) return pong;
  if (sent->second.awaited) {
    sent->second.answer = pong;
    answered_.notify();
  } else {
    sent_.erase(sent);
  }
  return pong;
}

}  // namespace weft
