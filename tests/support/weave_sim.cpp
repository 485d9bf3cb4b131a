#include "tests/support/weave_sim.h"

#include <algorithm>
#include <charconv>

namespace weft::test {

namespace {

using namespace std::chrono_literals;

// Frame header, and the JSON around the bytes: {"weft":"","ver":"5","sender":"…"}, and "infos":[…] if any.
std::size_t wire_bytes(std::size_t bytes, std::size_t name, std::size_t infos, std::size_t info_bytes) {
  return 6 + 32 + name + (bytes * 4 + 2) / 3 + (infos > 0 ? 10 + infos + info_bytes : 0);
}

}  // namespace

WeaveSim::Node& WeaveSim::make_node(std::size_t info_bytes) {
  const auto index = static_cast<Index>(nodes_.size());
  Node& node = nodes_.emplace_back();
  std::string digits = std::to_string(index);
  node.name = "node-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  node.random = std::make_unique<SeededRandom>(random_.next());
  node.info_bytes = info_bytes;
  return node;
}

WeaveSim::Index WeaveSim::add(std::size_t info_bytes) {
  make_node(info_bytes);
  const auto index = static_cast<Index>(nodes_.size() - 1);
  make_weave(nodes_[index]);
  start(index);
  return index;
}

void WeaveSim::add_settled(std::size_t count, std::size_t info_bytes) {
  for (std::size_t i = 0; i < count; ++i) make_weave(make_node(info_bytes));
  for (Node& node : nodes_) {
    for (const Node& other : nodes_) {
      node.weave->learn(other.name, node.number + 1, other.name + "/1", info_bytes, false, now_);
    }
  }
  for (std::size_t i = nodes_.size() - count; i < nodes_.size(); ++i) {
    const Duration delay(static_cast<Duration::rep>(random_.below(1'000'000'000)));
    // What comes before is read then.
    nodes_[i].frozen = true;
    at(now_ + delay, [this, i] {
      start(static_cast<Index>(i));
      thaw(static_cast<Index>(i));
    });
  }
}

void WeaveSim::make_weave(Node& node) {
  ++node.life;
  node.weave =
      std::make_unique<Weave>(node.name, node.name + "/" + std::to_string(node.life), options_, *node.random);
}

void WeaveSim::start(Index index) {
  Node& node = nodes_[index];
  node.weave->start(now_);
  node.weave->local_changed(2, node.info_bytes, now_);
  node.number = 2;
  carry_out(index);
}

void WeaveSim::join(Index node, Index seed_node) {
  nodes_[node].weave->meet(nodes_[seed_node].name, now_);
  carry_out(node);
}

void WeaveSim::change_service(Index index) {
  Node& node = nodes_[index];
  node.number = node.weave->roster().at(Roster::kSelf).number + 1;
  node.weave->local_changed(node.number, node.info_bytes, now_);
  carry_out(index);
}

void WeaveSim::kill(Index index) {
  Node& node = nodes_[index];
  node.weave.reset();
  node.frozen = false;
  node.unread.clear();
  for (const Index peer : std::exchange(node.links_to_us, {})) {
    links_.erase(std::uint64_t{peer} << 32 | index);
    push(now_ + latency(), Event::Kind::kLost, peer, index);
  }
  for (Node& other : nodes_) std::erase(other.links_to_us, index);
  std::erase_if(links_, [&](std::uint64_t link) { return link >> 32 == index; });
}

void WeaveSim::restart(Index node, Index seed_node) {
  make_weave(nodes_[node]);
  start(node);
  join(node, seed_node);
}

void WeaveSim::leave(Index node) {
  nodes_[node].weave->leave(now_);
  carry_out(node);
  at(now_ + 100ms, [this, node] { kill(node); });
}

void WeaveSim::freeze(Index node) {
  nodes_[node].frozen = true;
}

void WeaveSim::thaw(Index index) {
  Node& node = nodes_[index];
  if (node.weave == nullptr || !node.frozen) return;
  node.frozen = false;
  std::vector<Message> unread = std::exchange(node.unread, {});
  for (Message& message : unread) deliver(index, message);
  node.tick_at = now_;
  push(now_, Event::Kind::kTick, index, 0);
}

Duration WeaveSim::latency() {
  return Duration(500'000 + static_cast<Duration::rep>(random_.below(1'000'000)));
}

WeaveSim::Index WeaveSim::index_of(std::string_view name) const {
  Index index = 0;
  std::from_chars(name.data() + 5, name.data() + name.size(), index);
  return index;
}

void WeaveSim::push(Instant when, Event::Kind kind, Index node, std::uint32_t what) {
  queue_.push({when, ++order_, kind, node, what});
}

void WeaveSim::at(Instant when, std::function<void()> what) {
  scripts_.push_back(std::move(what));
  push(when, Event::Kind::kScript, 0, static_cast<std::uint32_t>(scripts_.size() - 1));
}

void WeaveSim::carry_out(Index index) {
  Node& node = nodes_[index];
  for (Weave::Output& output : node.weave->take_output()) {
    if (auto* out = std::get_if<Weave::Send>(&output)) {
      send(index, *out);
    } else if (auto* learned = std::get_if<Weave::Learned>(&output)) {
      if (on_change) on_change(index, index_of(learned->node), true, learned->number);
    } else if (auto* gone = std::get_if<Weave::Gone>(&output)) {
      const Index whom = index_of(gone->node);
      const Node& other = nodes_[whom];
      if (other.weave != nullptr && !other.faulty && !other.frozen && !node.faulty && !gone->left)
        ++wrong_removals_;
      if (on_change) on_change(index, whom, false, gone->number);
    } else if (auto* returned = std::get_if<Weave::Returned>(&output)) {
      node.number = returned->number;
    }
  }
  const Instant next = node.weave->next_tick();
  if (next != node.tick_at) {
    node.tick_at = next;
    if (next != kNever) push(std::max(next, now_), Event::Kind::kTick, index, 0);
  }
}

void WeaveSim::send(Index from, const Weave::Send& out) {
  Node& sender = nodes_[from];
  const Index to = index_of(out.node);
  std::size_t info_bytes = 0;
  for (const std::string& info : out.infos) info_bytes += nodes_[index_of(info)].info_bytes;
  const std::size_t bytes = wire_bytes(out.bytes.size(), sender.name.size(), out.infos.size(), info_bytes);
  bytes_sent_ += bytes;
  ++messages_sent_;
  sender.sends_after = std::max(sender.sends_after, now_) + Duration(static_cast<Duration::rep>(bytes * 8));
  Node& receiver = nodes_[to];
  const bool is_cut = sender.faults.side != receiver.faults.side;
  const bool is_lost = is_cut || (sender.faults.loss_out > 0 && random_.uniform() < sender.faults.loss_out) ||
                       (receiver.faults.loss_in > 0 && random_.uniform() < receiver.faults.loss_in);
  if (is_lost) return;
  Instant when = sender.sends_after + latency();
  if (links_.insert(std::uint64_t{from} << 32 | to).second) {
    if (receiver.weave == nullptr) {
      links_.erase(std::uint64_t{from} << 32 | to);
      return push(when + latency(), Event::Kind::kRefused, from, to);
    }
    when += 2 * latency();
    receiver.links_to_us.push_back(from);
  }
  std::uint32_t slot = static_cast<std::uint32_t>(messages_.size());
  if (free_messages_.empty()) {
    messages_.emplace_back();
  } else {
    slot = free_messages_.back();
    free_messages_.pop_back();
  }
  Message& message = messages_[slot];
  message.from = from;
  message.bytes.clear();
  message.bytes.append(out.bytes.view());
  message.infos = out.infos.size();
  push(when, Event::Kind::kMessage, to, slot);
}

void WeaveSim::deliver(Index to, Message& message) {
  Node& node = nodes_[to];
  node.weave->receive(nodes_[message.from].name, message.bytes.view(), message.infos, now_);
  carry_out(to);
}

void WeaveSim::run(const Event& event) {
  Node& node = nodes_[event.node];
  trace_ =
      (trace_ ^ (event.node + (static_cast<std::uint64_t>(event.when.time_since_epoch().count()) << 16))) *
      0x9e3779b97f4a7c15ULL;
  switch (event.kind) {
    case Event::Kind::kMessage: {
      Message message = std::move(messages_[event.what]);
      if (node.weave != nullptr && node.frozen) {
        node.unread.push_back(std::move(message));
      } else if (node.weave != nullptr) {
        deliver(event.node, message);
        messages_[event.what] = std::move(message);  // Its buffer is used again.
      }
      free_messages_.push_back(event.what);
      return;
    }
    case Event::Kind::kTick:
      if (node.weave == nullptr || node.frozen || node.tick_at > now_) return;
      node.tick_at = kNever;
      node.weave->tick(now_);
      return carry_out(event.node);
    case Event::Kind::kLost:
    case Event::Kind::kRefused:
      if (node.weave == nullptr) return;
      if (node.frozen) return push(now_ + 10ms, event.kind, event.node, event.what);
      node.weave->link_lost(nodes_[event.what].name, event.kind == Event::Kind::kRefused, now_);
      return carry_out(event.node);
    case Event::Kind::kScript:
      scripts_[event.what]();
      return;
  }
}

void WeaveSim::run_for(Duration span) {
  const Instant end = now_ + span;
  while (!queue_.empty() && queue_.top().when <= end) {
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.when;
    run(event);
  }
  now_ = end;
}

bool WeaveSim::run_until(const std::function<bool()>& done, Duration limit, Duration step) {
  const Instant end = now_ + limit;
  while (!done()) {
    if (now_ >= end) return false;
    run_for(std::min(step, end - now_));
  }
  return true;
}

bool WeaveSim::sees(Index who, Index whom) {
  const Roster& roster = nodes_[who].weave->roster();
  const std::uint32_t member = roster.find(nodes_[whom].name);
  return member != Roster::kNone && roster.at(member).online;
}

bool WeaveSim::converged() {
  std::size_t alive = 0;
  for (const Node& node : nodes_) alive += node.weave != nullptr ? 1 : 0;
  const std::uint64_t* sum = nullptr;
  std::uint64_t first = 0;
  for (const Node& node : nodes_) {
    if (node.weave == nullptr) continue;
    const Roster& roster = node.weave->roster();
    if (roster.online_count() != alive) return false;
    if (sum == nullptr) {
      first = roster.sum();
      sum = &first;
    }
    if (roster.sum() != *sum) return false;
  }
  return true;
}

std::vector<Duration> WeaveSim::spread(Index whom, Wait what, std::uint64_t number, Instant since,
                                       Duration limit) {
  std::vector<Duration> times;
  std::vector<bool> has(nodes_.size());
  std::size_t missing = 0;
  for (Index i = 0; i < nodes_.size(); ++i) {
    if (i == whom || nodes_[i].weave == nullptr || nodes_[i].faulty || nodes_[i].frozen) {
      has[i] = true;
    } else {
      ++missing;
    }
  }
  const auto before = std::exchange(on_change, [&](Index who, Index about, bool online, std::uint64_t seen) {
    if (about != whom || has[who] || online != (what == Wait::kOnlineAs) || seen < number) return;
    has[who] = true;
    --missing;
    times.push_back(now_ - since);
  });
  (void)run_until([&] { return missing == 0; }, limit);
  on_change = before;
  times.insert(times.end(), missing, limit);
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace weft::test
