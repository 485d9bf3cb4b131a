#include "broker/discovery/heartbeat.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft {

namespace {

constexpr Duration kCheckPeriodMax = std::chrono::seconds(1);
constexpr Duration kCheckPeriodMin = std::chrono::milliseconds(10);
constexpr Duration kOffsetMax = std::chrono::milliseconds(500);
// One node is asked for its INFO at most this often, …
constexpr Duration kAskGap = std::chrono::seconds(1);
// … and heartbeats of invented nodes cannot grow the table above this.
constexpr std::size_t kAskedMax = 10'000;

}  // namespace

HeartbeatMonitor::HeartbeatMonitor(NodeCatalog& nodes, const HeartbeatSettings& settings, Random& random,
                                   Instant now)
    : nodes_(nodes), settings_(settings) {
  if (settings_.interval <= Duration::zero()) return;
  const Duration spread = std::min(kOffsetMax, settings_.interval / 4);
  beat_period_ =
      settings_.interval - spread +
      Duration(static_cast<Duration::rep>(random.uniform() * 2 * static_cast<double>(spread.count())));
  // A silent node is noticed between the timeout and one check later.
  check_period_ = std::clamp(settings_.timeout / 4, kCheckPeriodMin, kCheckPeriodMax);
  next_beat_ =
      now +
      Duration(static_cast<Duration::rep>(random.uniform() * static_cast<double>(beat_period_.count())));
  next_check_ = now + check_period_;
}

void HeartbeatMonitor::receive(std::string_view sender, const Value& body, Instant now) {
  Node* node = nodes_.find(sender);
  if (node != nullptr && node->local) return;
  if (node == nullptr || !node->available) return ask(sender, now);
  const Value& seq = body["seq"];
  const std::string_view instance = body["instanceID"].str_or({});  // May be just its beginning.
  const bool is_other_seq = seq.is_number() && seq.f64() != static_cast<double>(node->seq);
  if (is_other_seq || !node->instance_id.starts_with(instance)) return ask(sender, now);
  node->last_heartbeat = now;
  if (const Value* cpu = body.find("cpu")) {
    const double percent = cpu->f64_or(-1);
    node->cpu.reset();
    if (percent >= 0 && percent <= 100) node->cpu = static_cast<int>(std::lround(percent));
  }
}

void HeartbeatMonitor::ask(std::string_view node, Instant now) {
  if (node.empty() || node.size() > kNodeIdBytesMax) return;
  const auto asked = asked_.find(node);
  if (asked != asked_.end()) {
    if (now - asked->second < kAskGap) return;
    asked->second = now;
  } else {
    if (asked_.size() >= kAskedMax) return;  // check() makes room.
    asked_.emplace(node, now);
  }
  output_.discover.emplace_back(node);
}

void HeartbeatMonitor::tick(Instant now) {
  if (now >= next_beat_) {
    output_.send_heartbeat = true;
    next_beat_ = now + beat_period_;
  }
  if (now < next_check_) return;
  // When this process was held up, the heartbeats of that time still wait to be read: first they are.
  check_put_off_ = !check_put_off_ && now - next_check_ > 2 * check_period_;
  next_check_ = now + check_period_;
  if (!check_put_off_) check(now);
}

void HeartbeatMonitor::check(Instant now) {
  std::erase_if(asked_, [now](const auto& entry) { return now - entry.second >= kAskGap; });
  nodes_.for_each([&](const Node& node) {
    if (node.local) return;
    const Duration silence = now - node.last_heartbeat;
    if (node.available) {
      if (silence > settings_.timeout) output_.timed_out.push_back(node.id);
    } else if (settings_.clean_offline_nodes > Duration::zero() && silence > settings_.clean_offline_nodes) {
      output_.forget.push_back(node.id);
    }
  });
}

Instant HeartbeatMonitor::next_tick() const {
  return std::min(next_beat_, next_check_);
}

HeartbeatMonitor::Output HeartbeatMonitor::take_output() {
  return std::exchange(output_, {});
}

}  // namespace weft
