#include "broker/gossip/weave/weave.h"

#include <algorithm>

#include "broker/gossip/gossip_rows.h"

namespace weft {

namespace {

// A timer that runs so late has been kept from running.
constexpr Duration kLate = std::chrono::milliseconds(300);

}  // namespace

std::uint32_t Weave::instance_of(std::string_view instance_id) {
  std::uint32_t hash = 0x811c9dc5;  // FNV-1a.
  for (const char each : instance_id) hash = (hash ^ static_cast<std::uint8_t>(each)) * 0x01000193;
  return hash;
}

Weave::Weave(std::string_view self, std::string_view instance_id, const WeaveOptions& options, Random& random)
    : options_(options), random_(random), roster_(self, instance_of(instance_id)) {}

void Weave::start(Instant now) {
  running_ = true;
  last_burst_ = now - options_.burst_gap;
  last_change_ = now;
  awake_since_ = now;
  next_retry_ = now + std::chrono::seconds(5);
  due_ = next_tick();
}

void Weave::begin(Instant now) {
  if (due_ != kNever && now - due_ > kLate) note_late(now);
}

// Ends an input: sends what it asked for.
void Weave::finish(Instant now) {
  if (!running_) return;
  sync_watches(now);
  pump_wants(now);
  flush_news(now);
  for (auto& [member, message] : outbox_) {
    Send send{roster_.at(member).name, {}, {}};
    write(message, send.bytes);
    output_.push_back(std::move(send));
  }
  outbox_.clear();
  for (const auto& [member, infos] : infos_out_) {
    for (std::size_t i = 0; i < infos.size();) {
      WeaveMessage message;
      Send send{roster_.at(member).name, {}, {}};
      for (std::size_t bytes = 0; i < infos.size(); ++i) {
        bytes += roster_.at(infos[i]).info_bytes;
        if (!send.infos.empty() && bytes > options_.infos_bytes_max) break;
        message.infos.push_back(roster_.head(infos[i]));
        send.infos.push_back(roster_.at(infos[i]).name);
      }
      write(message, send.bytes);
      output_.push_back(std::move(send));
    }
  }
  infos_out_.clear();
  due_ = next_tick();
}

void Weave::local_changed(std::uint64_t number, std::size_t info_bytes, Instant now) {
  begin(now);
  WeaveHead head = roster_.head(Roster::kSelf);
  head.number = std::max(number, head.number);
  head.content = head.number;
  head.info_bytes = static_cast<std::uint32_t>(info_bytes);
  roster_.set_online(Roster::kSelf, head);
  last_change_ = now;
  if (absence_) {
    absence_->number = std::max(absence_->number, head.number);  // Told when we are back.
  } else {
    tell(Roster::kSelf, Roster::kSelf);
  }
  finish(now);
}

void Weave::leave(Instant now) {
  if (!running_) return;
  WeaveHead head = roster_.head(Roster::kSelf);
  ++head.number;
  head.online = false;
  head.left = true;
  for (const std::uint32_t link : roster_.links()) message_to(link).news.push_back(head);
  finish(now);
  running_ = false;
  due_ = kNever;
}

void Weave::meet(std::string_view node, Instant now) {
  begin(now);
  const std::uint32_t member = find_or_add(node);
  if (member == Roster::kNone || member == Roster::kSelf) return;
  const Roster::Member& self = roster_.at(Roster::kSelf);
  message_to(member).ping = {++nonce_, roster_.sum(), self.number, self.instance};
  message_to(member).wants.push_back(roster_.at(member).name);
  finish(now);
}

void Weave::learn(std::string_view node, std::uint64_t number, std::string_view instance_id,
                  std::size_t info_bytes, bool is_news, Instant now) {
  begin(now);
  const std::uint32_t member = find_or_add(node);
  if (member == Roster::kNone || member == Roster::kSelf) return;
  const Roster::Member& known = roster_.at(member);
  if (number > known.number || (number == known.number && known.online && known.content < number)) {
    is_news = is_news && number > known.number;
    const WeaveHead head{.name = known.name,
                         .number = number,
                         .content = number,
                         .instance = instance_of(instance_id),
                         .info_bytes = static_cast<std::uint32_t>(info_bytes),
                         .online = true};
    roster_.set_online(member, head);
    wants_.erase(member);
    heard_offline_.erase(member);
    last_change_ = now;
    if (is_news) tell(member, Roster::kSelf);
  }
  finish(now);
}

void Weave::learn_gone(std::string_view node, std::uint64_t number, bool left, Instant now) {
  begin(now);
  const std::uint32_t member = roster_.find(node);
  if (member == Roster::kNone || member == Roster::kSelf) return;
  const Roster::Member& known = roster_.at(member);
  if (number > known.number || (number == known.number && known.online)) {
    go_offline(member, number, left, Roster::kSelf, now);
  }
  finish(now);
}

void Weave::forget(std::string_view node) {
  const std::uint32_t member = roster_.find(node);
  if (member == Roster::kNone || member == Roster::kSelf) return;
  // Nothing may point to an index that another node gets.
  wants_.erase(member);
  outbox_.erase(member);
  infos_out_.erase(member);
  heard_offline_.erase(member);
  link_broke_.erase(member);
  std::erase(want_queue_, member);
  std::erase(asked_, member);
  for (auto& [wanted, want] : wants_) std::erase(want.sources, member);
  std::erase_if(news_, [&](const News& news) { return news.subject == member; });
  for (News& news : news_) {
    if (news.source == member) news.source = Roster::kSelf;
  }
  std::erase_if(watches_, [&](const Watch& watch) { return watch.subject == member; });
  for (Watch& watch : watches_) watch.accusers.erase(member);
  if (sync_ && sync_->peer == member) sync_.reset();
  roster_.forget(member);
}

void Weave::receive(std::string_view from_name, BytesView bytes, std::size_t infos, Instant now) {
  WeaveMessage in;
  if (!running_ || from_name == roster_.at(Roster::kSelf).name || !is_node_id(from_name) ||
      !read(bytes, in)) {
    ++stats_.messages_ignored;
    return;
  }
  begin(now);
  if (now - last_heard_ > options_.probe_period + options_.probe_timeout / 4) silence_ended_ = now;
  last_heard_ = now;
  const std::uint32_t from = find_or_add(from_name);
  if (from == Roster::kNone) {
    ++stats_.messages_ignored;
    return;
  }
  if (in.note) take_note(from, *in.note, now);
  for (const WeaveHead& head : in.news) {
    // What the removed say of others they may have said in a part that was cut off.
    if (head.online || !holds_offline(from) || head.name == from_name) take(head, from, now);
  }
  if (!in.infos.empty()) on_infos(from, in.infos, infos, now);
  if (in.ping) on_ping(from, *in.ping, now);
  if (in.pong) on_pong(from, *in.pong, now);
  if (in.accusation) on_accusation(from, *in.accusation, now);
  if (in.voucher) on_voucher(*in.voucher);
  if (!in.wants.empty()) on_wants(from, in.wants);
  if (in.sums) on_sums(from, *in.sums);
  if (in.differing) on_differing(from, *in.differing, now);
  if (in.get) on_get(from, *in.get, now);
  if (in.buckets) on_buckets(from, *in.buckets, now);
  finish(now);
}

void Weave::tick(Instant now) {
  if (!running_) return;
  begin(now);
  tick_watches(now);
  tick_wants(now);
  if (sync_ && now - sync_->waiting_since > std::chrono::seconds(1)) sync_.reset();
  if (now >= next_retry_) retry_lost(now);
  finish(now);
}

Instant Weave::next_tick() const {
  if (!running_) return kNever;
  Instant next = next_retry_;
  if (!news_.empty()) next = std::min(next, last_burst_ + options_.burst_gap);
  for (const Watch& watch : watches_) {
    next = std::min({next, watch.decide_at, watch.deadline != kNever ? watch.deadline : watch.next_probe});
  }
  for (const std::uint32_t member : asked_) {
    const auto found = wants_.find(member);
    if (found == wants_.end() || !found->second.asked) continue;
    next = std::min(next, *found->second.asked + std::chrono::milliseconds(300));
    break;  // They are in the order of asking.
  }
  if (sync_) next = std::min(next, sync_->waiting_since + std::chrono::milliseconds(1001));
  return next;
}

std::uint32_t Weave::find_or_add(std::string_view name) {
  const std::uint32_t known = roster_.find(name);
  if (known != Roster::kNone) return known;
  return roster_.size() < options_.nodes_max ? roster_.add(name) : Roster::kNone;
}

// A head that somebody says. Names of heads need not outlive the input.
void Weave::take(const WeaveHead& head, std::uint32_t from, Instant now) {
  std::uint32_t member = roster_.find(head.name);
  if (member == Roster::kSelf) return take_own(head, {}, now);
  if (member == Roster::kNone) {
    if (!head.online) return;
    member = find_or_add(head.name);
    if (member == Roster::kNone) return;
  }
  const Roster::Member& known = roster_.at(member);
  if (!head.online) {
    if (head.number > known.number || (head.number == known.number && known.online)) {
      go_offline(member, head.number, head.left, from, now);
    }
    return;
  }
  if (head.number <= known.number) return;
  const bool has_info = known.instance == head.instance && known.content > 0 && known.content >= head.content;
  if (has_info) {
    go_online(member, head, kKnownInfo, from);
    last_change_ = now;
  } else {
    want(member, head, from);
  }
}

void Weave::go_online(std::uint32_t member, const WeaveHead& head, std::size_t info, std::uint32_t from) {
  roster_.set_online(member, head);
  heard_offline_.erase(member);
  output_.push_back(Learned{roster_.at(member).name, head.number, info});
  tell(member, from);
}

void Weave::go_offline(std::uint32_t member, std::uint64_t number, bool left, std::uint32_t from,
                       Instant now) {
  const bool was_online = roster_.at(member).online;
  roster_.set_offline(member, number, left, now);
  const auto wanted = wants_.find(member);
  if (wanted != wants_.end() && wanted->second.head.number <= number) wants_.erase(wanted);
  if (!was_online) return;
  last_change_ = now;
  output_.push_back(Gone{roster_.at(member).name, number, left});
  tell(member, from);
}

void Weave::take_note(std::uint32_t from, const WeaveMessage::Note& note, Instant now) {
  if (note.head.name != roster_.at(Roster::kSelf).name) return;
  // After a cut each side holds the other offline: the smaller one gives in.
  const std::size_t online = roster_.online_count();
  const bool yields =
      note.online_count > online || (note.online_count == online && roster_.at(from).name < note.head.name);
  if (holds_offline(from) && !yields && !absence_ && note.head.instance == roster_.at(Roster::kSelf).instance)
    return;
  take_own(note.head, std::chrono::milliseconds(note.heard_ms), now);
}

void Weave::take_own(const WeaveHead& head, Duration heard_for, Instant now) {
  const Roster::Member& self = roster_.at(Roster::kSelf);
  if (head.number < self.number) return;
  if (head.instance != self.instance) return raise_own(head.number + 1, now);  // Of an earlier life.
  if (!head.online) return begin_absence(head.number, heard_for, now);
  if (head.number > self.number) raise_own(head.number + 1, now);  // Nobody but us may raise it.
}

void Weave::raise_own(std::uint64_t number, Instant now) {
  if (absence_) {
    absence_->number = std::max(absence_->number, number);
    return;
  }
  WeaveHead head = roster_.head(Roster::kSelf);
  head.number = number;
  roster_.set_online(Roster::kSelf, head);
  last_change_ = now;
  output_.push_back(Returned{number});
  tell(Roster::kSelf, Roster::kSelf);
}

void Weave::flush_news(Instant now) {
  if (news_.empty() || now - last_burst_ < options_.burst_gap) return;
  // What changed twice is told once, as it is now.
  std::stable_sort(news_.begin(), news_.end(),
                   [](const News& a, const News& b) { return a.subject < b.subject; });
  for (const std::uint32_t link : roster_.links()) {
    std::uint32_t last = Roster::kNone;
    for (const News& news : news_) {
      if (news.subject == last || news.source == link || news.subject == link) continue;
      if (roster_.at(news.subject).number == 0) continue;
      last = news.subject;
      message_to(link).news.push_back(roster_.head(news.subject));
    }
  }
  news_.clear();
  last_burst_ = now;
}

}  // namespace weft
