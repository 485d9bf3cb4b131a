// When Gossip speaks of its own accord: periods, contacts, bursts of news.

#include <algorithm>

#include "broker/gossip/gossip.h"
#include "broker/gossip/gossip_answer.h"

namespace weft {

namespace {

constexpr std::size_t kOfflineContactsMax = 16;  // Lost nodes tried in one period.

// Moves `count` items drawn at random to the front.
template <typename T>
void draw(std::vector<T>& items, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i) std::swap(items[i], items[i + random.below(items.size() - i)]);
  items.resize(count);
}

}  // namespace

void Gossip::start(Instant now) {
  // Nodes that were started together do not gossip in step.
  next_period_ = now + std::chrono::duration_cast<Duration>(options_.period * (0.5 + random_.uniform() / 2));
}

void Gossip::tick(Instant now) {
  if (now >= earliest_due_) {
    earliest_due_ = kNever;
    for (auto& [id, known] : peers_) {
      if (!known.due) continue;
      if (*known.due > now) {
        earliest_due_ = std::min(earliest_due_, *known.due);
        continue;
      }
      known.due.reset();
      const Node* node = catalog_.find(id);
      if (node != nullptr && !(known.due_if_offline && node->available)) to_contact_.insert(id);
    }
  }
  if (now >= next_period_) run_period(now);
  finish(now);
}

Instant Gossip::next_tick() const {
  Instant next = std::min(next_period_, earliest_due_);
  if (!news_.empty() && last_burst_) next = std::min(next, *last_burst_ + options_.burst_gap);
  return next;
}

void Gossip::local_changed(Instant now) {
  spread(catalog_.self().id, catalog_.self().id);
  finish(now);
}

void Gossip::local_cpu(int percent) {
  Node& self = catalog_.self();
  if (self.cpu == percent) return;
  self.cpu = percent;
  ++self.cpu_seq;
}

void Gossip::contact(const Node& node, Reason reason, Instant now, Duration delay) {
  Peer& known = peer(node);
  if (!known.learned.valid()) return;
  Instant due = now + delay;
  if (known.contacted) due = std::max(due, *known.contacted + options_.contact_gap);
  if (due <= now) {
    to_contact_.insert(node.id);
    return;
  }
  known.due_if_offline = reason == Reason::kOffline && (!known.due || known.due_if_offline);
  known.due = known.due ? std::min(*known.due, due) : due;
  earliest_due_ = std::min(earliest_due_, *known.due);
}

void Gossip::spread(std::string_view id, std::string_view source) {
  news_[std::string(id)] = source;
}

void Gossip::run_period(Instant now) {
  next_period_ = now + options_.period;
  forget_offline_since(now - options_.forget_after);
  std::vector<const Node*> online;
  std::vector<const Node*> lost_lately;
  std::vector<const Node*> lost_long_ago;
  catalog_.for_each([&](const Node& node) {
    if (node.local || !peer(node).learned.valid()) return;
    if (node.available) {
      online.push_back(&node);
    } else {
      const bool is_lately = node.offline_since && now - *node.offline_since <= options_.forget_after;
      (is_lately ? lost_lately : lost_long_ago).push_back(&node);
    }
  });
  if (!online.empty()) to_contact_.insert(online[random_.below(online.size())]->id);
  contact_offline(std::move(lost_lately), lost_long_ago, online.size(), now);
}

void Gossip::contact_offline(std::vector<const Node*> recent, const std::vector<const Node*>& old,
                             std::size_t online_count, Instant now) {
  // Lost lately: each is tried every fourth period at least, the longest untried first.
  const std::size_t count = std::min((recent.size() + 3) / 4, kOfflineContactsMax);
  const auto contacted = [this](const Node* node) { return peer(*node).contacted.value_or(Instant::min()); };
  std::partial_sort(recent.begin(), recent.begin() + static_cast<std::ptrdiff_t>(count), recent.end(),
                    [&](const Node* a, const Node* b) {
                      return std::pair(contacted(a), std::string_view(a->id)) <
                             std::pair(contacted(b), std::string_view(b->id));
                    });
  recent.resize(count);
  for (const Node* node : recent) contact(*node, Reason::kOffline, now);
  // Lost long ago: now and then, the more likely the fewer are left.
  if (old.empty()) return;
  const double likelihood = static_cast<double>(old.size()) / static_cast<double>(online_count + 1);
  if (random_.uniform() < likelihood) contact(*old[random_.below(old.size())], Reason::kOffline, now);
}

void Gossip::burst(Instant now) {
  if (news_.empty() || (last_burst_ && now - *last_burst_ < options_.burst_gap)) return;
  std::set<std::string_view> informed;
  for (const auto& [id, source] : news_) {
    informed.insert(id);
    informed.insert(source);
  }
  std::vector<const Node*> targets;
  catalog_.for_each([&](const Node& node) {
    if (!node.local && node.available && peer(node).learned.valid() && !informed.contains(node.id)) {
      targets.push_back(&node);
    }
  });
  draw(targets, std::min(options_.fanout, targets.size()), random_);
  if (!targets.empty()) {
    std::vector<std::string> to;
    for (const Node* node : targets) to.push_back(node->id);
    Answer answer(std::move(to), options_.packet_bytes_max, output_);
    for (const auto& [id, source] : news_) {
      const Node* node = catalog_.find(id);
      if (node == nullptr) continue;
      if (node->available) {
        answer.online(id, info_row_of(*node));
      } else if (node->seq > 0) {
        answer.offline(id, node->seq);
      }
    }
    answer.send();
    last_burst_ = now;
  }
  news_.clear();
}

void Gossip::finish(Instant now) {
  burst(now);
  if (to_contact_.empty()) return;
  Send request{{}, PacketType::kGossipRequest, request_body()};
  for (const std::string& id : to_contact_) {
    const Node* node = catalog_.find(id);
    if (node == nullptr) continue;
    Peer& known = peer(*node);
    known.contacted = now;
    known.failed_since = false;
    known.due.reset();
    request.nodes.push_back(id);
  }
  to_contact_.clear();
  if (!request.nodes.empty()) output_.push_back(std::move(request));
}

Value Gossip::request_body() const {
  Value online = Value::object();
  Value offline = Value::object();
  catalog_.for_each([&](const Node& node) {
    if (node.available) {
      online.append_member(node.id, arr(node.seq, node.cpu_seq, node.cpu.value_or(0)));
    } else if (node.seq > 0) {
      offline.append_member(node.id, node.seq);
    }
  });
  Value body{{"online", std::move(online)}};
  if (!offline.empty()) body.set("offline", std::move(offline));
  return body;
}

}  // namespace weft
