// When Gossip speaks of its own accord: periods, contacts, bursts of news.

#include <algorithm>

#include "broker/gossip/gossip.h"
#include "broker/gossip/gossip_answer.h"

namespace weft {

namespace {

constexpr std::size_t kFarewellsMax = 256;
constexpr std::size_t kOfflineContactsMax = 16;  // Lost nodes tried in one period.
// With so many nodes of the weave there is gossip with one of them each period, with more of them more
// rarely: a request names them all, and is to cost the same in any mesh.
constexpr std::size_t kWeaveNodes = 16;
// Who has news of the weave's nodes tells nodes of other kinds with such odds that about so many do.
constexpr double kTellers = 3;

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

void Gossip::leaving(Instant now) {
  is_leaving_ = true;
  local_changed(now);
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
  std::vector<const Node*> online_in_weave;
  std::vector<const Node*> lost_lately;
  std::vector<const Node*> lost_long_ago;
  const bool is_weave_round = now >= next_weave_round_;
  catalog_.for_each([&](const Node& node) {
    if (node.local || !peer(node).learned.valid()) return;
    if (node.available) {
      (in_weave(node) ? online_in_weave : online).push_back(&node);
    } else if (is_weave_round || !in_weave(node)) {
      const bool is_lately = node.offline_since && now - *node.offline_since <= options_.forget_after;
      (is_lately ? lost_lately : lost_long_ago).push_back(&node);
    }
  });
  if (!online.empty()) to_contact_.insert(online[random_.below(online.size())]->id);
  if (is_weave_round) {
    if (!online_in_weave.empty()) {
      to_contact_.insert(online_in_weave[random_.below(online_in_weave.size())]->id);
    }
    const auto periods = std::max<std::size_t>(online_in_weave.size() / kWeaveNodes, 1);
    next_weave_round_ = now + options_.period * static_cast<Duration::rep>(periods) - options_.period / 2;
  }
  contact_offline(std::move(lost_lately), lost_long_ago, online.size() + online_in_weave.size(), now);
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
  if (news_.empty() || (!is_leaving_ && last_burst_ && now - *last_burst_ < options_.burst_gap)) return;
  const std::size_t packets = output_.size();
  send_news(false);
  if (options_.weave) send_news(true);
  if (output_.size() > packets) last_burst_ = now;
  news_.clear();
}

// News of nodes in the weave goes to nodes of other kinds only, all other news to all kinds.
void Gossip::send_news(bool of_weave) {
  std::vector<const Node*> subjects;
  std::set<std::string_view> informed;
  bool is_own = false;
  for (const auto& [id, source] : news_) {
    const Node* node = catalog_.find(id);
    if (node == nullptr || in_weave(*node) != of_weave) continue;
    subjects.push_back(node);
    is_own = is_own || node->local;
    informed.insert(id);
    informed.insert(source);
  }
  if (subjects.empty()) return;
  std::vector<const Node*> targets;
  std::size_t tellers = 1;
  catalog_.for_each([&](const Node& node) {
    if (node.local || !node.available) return;
    if (of_weave && in_weave(node) && !is_leaving_) {
      ++tellers;
    } else if (peer(node).learned.valid() && (is_leaving_ || !informed.contains(node.id))) {
      targets.push_back(&node);
    }
  });
  if (targets.empty()) return;
  if (of_weave && !is_own && random_.uniform() * static_cast<double>(tellers) >= kTellers) return;
  draw(targets, std::min(is_leaving_ ? kFarewellsMax : options_.fanout, targets.size()), random_);
  std::vector<std::string> to;
  for (const Node* node : targets) to.push_back(node->id);
  Answer answer(std::move(to), options_.packet_bytes_max, output_);
  for (const Node* node : subjects) {
    if (node->available) {
      answer.online(node->id, info_row_of(*node));
    } else if (node->seq > 0) {
      answer.offline(node->id, node->seq);
    }
  }
  answer.send();
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

// What does not go into one packet is left out, other rows each time. A Moleculer node answers with what it
// knows of those, which costs more than it tells; a weft node sees that they are missing only here.
Value Gossip::request_body() {
  constexpr std::size_t kRowBytes = 40;  // Beside the name: three numbers and what is around them.
  std::vector<const Node*> rows;
  std::size_t bytes = 0;
  catalog_.for_each([&](const Node& node) {
    if (!node.available && node.seq == 0) return;
    rows.push_back(&node);
    bytes += node.id.size() + kRowBytes;
  });
  const bool is_partial = bytes > options_.packet_bytes_max;
  if (is_partial) {
    const std::size_t first = random_.below(rows.size());
    std::rotate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end());
    // We are always named, and before others those held offline: who is among them has to learn of it.
    std::stable_partition(rows.begin(), rows.end(),
                          [](const Node* node) { return node->local || !node->available; });
    for (; bytes > options_.packet_bytes_max; rows.pop_back()) bytes -= rows.back()->id.size() + kRowBytes;
  }
  Value online = Value::object();
  Value offline = Value::object();
  for (const Node* node : rows) {
    if (node->available) {
      online.append_member(node->id, arr(node->seq, node->cpu_seq, node->cpu.value_or(0)));
    } else {
      offline.append_member(node->id, node->seq);
    }
  }
  Value body{{"online", std::move(online)}};
  if (!offline.empty()) body.set("offline", std::move(offline));
  if (is_partial) body.set("partial", true);
  return body;
}

}  // namespace weft
