#include "broker/discovery/pinger.h"

#include <cmath>

namespace weft {

Task<std::optional<Pong>> Pinger::ping(std::string node_id, std::string id, Duration timeout) {
  struct Forget {  // However this ends, the frame being destroyed included.
    std::map<std::string, std::optional<Pong>, std::less<>>& waiting;
    const std::string& id;
    ~Forget() { waiting.erase(id); }
  };
  waiting_.emplace(id, std::nullopt);
  const Forget forget{waiting_, id};
  Value body{{"id", id}, {"time", loop_.wall_ms()}};
  if (!sender_.send_control(PacketType::kPing, node_id, std::move(body))) co_return std::nullopt;
  const Instant deadline = loop_.now() + timeout;
  while (!waiting_.find(id)->second) {
    const bool woken = co_await answered_.wait(loop_, deadline);
    if (!woken) co_return std::nullopt;
  }
  co_return waiting_.find(id)->second;
}

void Pinger::probe(std::string_view node_id, std::string_view id) {
  (void)sender_.send_control(PacketType::kPing, node_id, Value{{"id", id}, {"time", loop_.wall_ms()}});
}

void Pinger::on_ping(std::string_view sender, const Value& body) {
  Value pong{{"id", body["id"]}, {"time", body["time"]}, {"arrived", loop_.wall_ms()}};
  (void)sender_.send_control(PacketType::kPong, sender, std::move(pong));
}

std::optional<Pong> Pinger::on_pong(std::string_view sender, const Value& body) {
  if (!body["time"].is_number() || !body["arrived"].is_number()) return std::nullopt;
  const double now = static_cast<double>(loop_.wall_ms());
  Pong pong;
  pong.node_id = sender;
  pong.id = body["id"].str_or({});
  pong.elapsed_ms = now - body["time"].f64();
  pong.time_diff_ms = std::round(now - body["arrived"].f64() - pong.elapsed_ms / 2);
  if (const auto waiting = waiting_.find(body["id"].str_or({})); waiting != waiting_.end()) {
    waiting->second = pong;
    answered_.notify();
  }
  return pong;
}

}  // namespace weft
