#include "broker/calls/prober.h"

#include <algorithm>

namespace weft {

namespace {

constexpr Duration kHeldUp = std::chrono::milliseconds(250);  // A tick so late: this process was held up.
constexpr Duration kLately = std::chrono::seconds(30);

bool answers_pings(const Node& node) {
  const std::string_view type = node.client["type"].str_or({});
  return type == "weft" || type == "nodejs";
}

}  // namespace

void Prober::start(Instant now) {
  started_ = now;
  next_tick_ = now + kTick;
  pings_.clear();
}

Prober::Times Prober::times_of(const Node& node) const {
  const auto found = times_.find(&node);
  Times times = found == times_.end() ? Times{} : found->second;
  times.heard = std::max(times.heard, started_);
  return times;
}

bool Prober::heard_lately(const Node& node, Instant now) const {
  const auto found = times_.find(&node);
  return found != times_.end() && found->second.spoke != Instant{} &&
         now - found->second.spoke <= settings_.interval + settings_.timeout;
}

std::vector<const Node*> Prober::watched(Instant now) const {
  std::vector<const Node*> others;  // In order of names.
  std::size_t behind_self = 0;
  nodes_.for_each([&](const Node& node) {
    if (node.local) {
      behind_self = others.size();
    } else if (node.available && answers_pings(node)) {
      others.push_back(&node);
    }
  });
  if (others.size() < kSmallMesh) return others;
  std::rotate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(behind_self), others.end());
  const auto is_stranger = [&](const Node* node) {
    const Instant asked = times_of(*node).asked;
    return asked == Instant{} || now - asked > kLately;
  };
  others.erase(std::remove_if(others.begin() + kWatchedMin, others.end(), is_stranger), others.end());
  return others;
}

void Prober::on_suspected(std::string_view id, Instant now) {
  const Node* node = nodes_.find(id);
  if (node == nullptr || node->local || !node->available || !answers_pings(*node)) return;
  if (pings_.contains(id) || now - times_of(*node).heard < settings_.timeout / 4) return;
  // Not told on: whoever misses an answer first has told everyone.
  pings_.emplace(id, Ping{.sent = now, .told = true});
  output_.ping.emplace_back(id);
}

bool Prober::link_ended(const Node& node) const {
  const auto found = times_.find(&node);
  return found != times_.end() && found->second.link_ended;
}

void Prober::on_lost(std::string_view id) {
  if (const Node* node = nodes_.find(id)) times_[node].link_ended = true;
  const auto found = hung_.find(id);
  if (found != hung_.end()) hung_.erase(found);
}

bool Prober::on_back(const Node& node, Instant now) {
  times_[&node].heard = now;
  const auto found = hung_.find(node.id);
  if (found == hung_.end()) return false;
  const bool is_other = found->second.instance != node.instance_id;
  hung_.erase(found);
  return is_other;
}

void Prober::tick(Instant now) {
  if (now < next_tick_) return;
  if (now - next_tick_ > kHeldUp) {
    for (auto& [id, ping] : pings_) ping.sent = now;
  }
  next_tick_ = now + kTick;

  for (auto entry = pings_.begin(); entry != pings_.end();) {
    auto& [id, ping] = *entry;
    const Node* node = nodes_.find(id);
    const bool answered = node == nullptr || !node->available || times_of(*node).heard >= ping.sent;
    const bool overdue = !answered && now - ping.sent >= settings_.timeout;
    if (overdue) {
      output_.hung.push_back(id);
    } else if (!answered && !ping.told && now - ping.sent >= settings_.timeout / 4) {
      ping.told = true;
      output_.suspected.push_back(id);
    }
    entry = answered || overdue ? pings_.erase(entry) : std::next(entry);
  }
  for (const Node* node : watched(now)) {
    if (now - times_of(*node).heard < settings_.interval || pings_.contains(node->id)) continue;
    if (std::find(output_.hung.begin(), output_.hung.end(), node->id) != output_.hung.end()) continue;
    pings_.emplace(node->id, Ping{.sent = now});
    output_.ping.push_back(node->id);
  }
  for (auto entry = hung_.begin(); entry != hung_.end();) {
    const Node* node = nodes_.find(entry->first);
    const bool is_over = node == nullptr || node->available;
    const bool is_lost = !is_over && now - entry->second.since >= settings_.give_up;
    if (is_lost) output_.lost.push_back(entry->first);
    entry = is_over || is_lost ? hung_.erase(entry) : std::next(entry);
  }
}

}  // namespace weft
