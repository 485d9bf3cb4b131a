// Who lives: probes, accusations, removals; and what a node does that others have removed.

#include <algorithm>

#include "broker/gossip/gossip_rows.h"
#include "broker/gossip/weave/weave.h"

namespace weft {

namespace {

using namespace std::chrono_literals;

constexpr int kStrainMax = 6;
// An accusation counts so long without being renewed.
constexpr Duration kAccusationLife = 4s;
// When so few observers answer that there is no majority among them, two are enough after this.
constexpr Duration kLongSilence = 3s;
// A node that speaks so long after it was told that it is held offline does not hear what it is told.
constexpr Duration kDeaf = 1s;
// Who has heard, so lately, that it is accused, and was awake for some time, was not heard itself.
constexpr Duration kAwake = 300ms;
constexpr Duration kUnheardMax = 10s;
// Who heard nothing at all, so lately, was cut off both ways: what it hears of that time comes late.
constexpr Duration kCutOffMax = 5s;
// A link that breaks is dialled again within this time.
constexpr Duration kRedialMax = 5s;
constexpr Duration kTrialPeriod = 100ms;
constexpr int kTrials = 8;  // Answers in a row that show that the way there and back is good.
constexpr Duration kRemovalMemory = 5min;
constexpr Duration kQuarantineMax = 2min;
constexpr Duration kRetryPeriod = 5s;
constexpr Duration kRetryFor = 10min;
constexpr std::size_t kRetriers = 8;  // Nodes that try a lost one in each retry period.

}  // namespace

void Weave::sync_watches(Instant now) {
  if (watched_version_ == roster_.neighbours_version()) return;
  watched_version_ = roster_.neighbours_version();
  std::vector<Watch> watches;
  for (const std::uint32_t subject : roster_.subjects()) {
    if (Watch* known = watch_of(subject)) {
      watches.push_back(std::move(*known));
      known->subject = Roster::kNone;
      continue;
    }
    Watch& added = watches.emplace_back();
    added.subject = subject;
    // A newcomer asks at once: the answer says what it lacks.
    const double delay =
        caught_up_ ? random_.uniform() * static_cast<double>(options_.probe_period.count()) : 0;
    added.next_probe = now + Duration(static_cast<Duration::rep>(delay));
  }
  watches_ = std::move(watches);
}

Weave::Watch* Weave::watch_of(std::uint32_t subject) {
  const auto found = std::find_if(watches_.begin(), watches_.end(),
                                  [&](const Watch& watch) { return watch.subject == subject; });
  return found == watches_.end() ? nullptr : &*found;
}

Duration Weave::timeout() const {
  return options_.probe_timeout * (2 + strain_) / 2;
}

void Weave::doubt_itself(int by) {
  strain_ = std::clamp(strain_ + by, 0, kStrainMax);
}

void Weave::probe(Watch& watch, Instant now) {
  const Roster::Member& self = roster_.at(Roster::kSelf);
  watch.nonce_before = watch.nonce;
  watch.nonce = ++nonce_;
  watch.sent = now;
  watch.deadline = now + timeout();
  watch.next_probe =
      now + (absence_ ? kTrialPeriod * static_cast<Duration::rep>(watches_.size()) : options_.probe_period);
  message_to(watch.subject).ping = {watch.nonce, roster_.sum(), self.number, self.instance};
}

void Weave::tick_watches(Instant now) {
  for (Watch& watch : watches_) {
    if (watch.deadline <= now) on_silence(watch, now);
    if (watch.decide_at <= now) {
      watch.decide_at = kNever;
      decide(watch, now);
    }
    if (watch.deadline == kNever && watch.next_probe <= now) probe(watch, now);
  }
  check_absence(now);
}

void Weave::on_silence(Watch& watch, Instant now) {
  watch.deadline = kNever;
  watch.next_probe = now;
  if (!watch.silent_since) watch.silent_since = watch.sent;
  if (absence_) {
    absence_->clean_probes = 0;
    absence_->clean_since = now;
    return;
  }
  doubt_itself(1);
  for (Watch& each : watches_) review(each, now);
}

// At least half of the others it watches answer: what is silent is not this node's own ears.
bool Weave::trusts_itself(const Watch& about) const {
  std::size_t silent = 0;
  for (const Watch& watch : watches_) {
    if (&watch != &about && watch.silent_since) ++silent;
  }
  return 2 * silent <= watches_.size() - 1;
}

void Weave::review(Watch& watch, Instant now) {
  if (!watch.silent_since || absence_ || !trusts_itself(watch)) return;
  if (!watch.accused_since || now - watch.accused_last >= options_.probe_period) {
    if (!watch.accused_since) {
      watch.accused_since = now;
      watch.decide_at = *watch.silent_since + 2 * options_.probe_timeout;
      ++stats_.accusations;
    }
    watch.accused_last = now;
    const Roster::Member& subject = roster_.at(watch.subject);
    const WeaveMessage::Doubt doubt{subject.name, subject.number};
    message_to(watch.subject).accusation = doubt;
    for (const std::uint32_t observer : roster_.observers_of(watch.subject)) {
      if (observer != Roster::kSelf) message_to(observer).accusation = doubt;
    }
  }
  decide(watch, now);
}

void Weave::decide(Watch& watch, Instant now) {
  // A pause that is shorter is none of our business.
  if (!watch.accused_since || absence_ || now - *watch.silent_since < 2 * options_.probe_timeout) return;
  const std::vector<std::uint32_t> observers = roster_.observers_of(watch.subject);
  std::size_t agreed = 0;
  for (const std::uint32_t observer : observers) {
    if (observer == Roster::kSelf) ++agreed;
    const auto accuser = watch.accusers.find(observer);
    if (accuser != watch.accusers.end() && now - accuser->second <= kAccusationLife) ++agreed;
  }
  std::size_t needed = observers.size() <= 2 ? observers.size() : observers.size() / 2 + 1;
  if (now - *watch.accused_since >= kLongSilence) needed = std::min<std::size_t>(needed, 2);
  if (agreed < needed) return;
  ++stats_.removals;
  remove(watch.subject, now);
}

void Weave::remove(std::uint32_t member, Instant now) {
  go_offline(member, roster_.at(member).number + 1, false, Roster::kSelf, now);
  note_to(member, {});
  // The watch goes with the neighbourhood, at the end of this input; until then it is at rest.
  if (Watch* watch = watch_of(member)) {
    *watch = {};
    watch->subject = member;
    watch->next_probe = kNever;
  }
}

void Weave::note_to(std::uint32_t member, Duration heard_for) {
  const double ms = std::min(to_ms(heard_for), 3'600'000.0);
  message_to(member).note = {roster_.head(member), static_cast<std::uint32_t>(ms),
                             static_cast<std::uint32_t>(roster_.online_count())};
}

void Weave::link_lost(std::string_view node, bool refused, Instant now) {
  const std::uint32_t member = roster_.find(node);
  if (!running_ || member == Roster::kNone || member == Roster::kSelf || !roster_.at(member).online) return;
  begin(now);
  std::erase_if(link_broke_, [&](const auto& entry) { return now - entry.second > kRedialMax; });
  if (refused) {
    if (link_broke_.erase(member) > 0) {
      ++stats_.removals;
      remove(member, now);
      outbox_.erase(member);  // Nobody is there to be told.
    }
  } else {
    link_broke_[member] = now;
    // Dialled anew, it either answers or is refused.
    const Roster::Member& self = roster_.at(Roster::kSelf);
    message_to(member).ping = {++nonce_, roster_.sum(), self.number, self.instance};
  }
  finish(now);
}

void Weave::on_ping(std::uint32_t from, const WeaveMessage::Ping& ping, Instant now) {
  message_to(from).pong = {ping.nonce, roster_.sum()};
  const Roster::Member& known = roster_.at(from);
  if (ping.number > known.number) {
    want(from,
         {.name = known.name,
          .number = ping.number,
          .content = ping.number,
          .instance = ping.instance,
          .online = true},
         from);
    return;
  }
  if (known.online && ping.instance != known.instance) return note_to(from, {});  // It began anew.
  if (!known.online) {
    note_to(from, now - heard_offline_.emplace(from, now).first->second);
    return;
  }
  compare_sum(from, ping.sum, now);
}

void Weave::on_pong(std::uint32_t from, const WeaveMessage::Pong& pong, Instant now) {
  if (holds_offline(from)) {
    return note_to(from, now - heard_offline_.emplace(from, now).first->second);
  }
  Watch* watch = watch_of(from);
  if (watch == nullptr || (pong.nonce != watch->nonce && pong.nonce != watch->nonce_before)) return;
  if (pong.nonce == watch->nonce) watch->deadline = kNever;
  if (watch->silent_since) watch->next_probe = std::max(watch->next_probe, now + options_.probe_period / 4);
  watch->silent_since.reset();
  watch->accused_since.reset();
  watch->decide_at = kNever;
  doubt_itself(-1);
  if (!watch->accusers.empty()) {
    const WeaveMessage::Doubt doubt{roster_.at(from).name, roster_.at(from).number};
    for (const auto& [accuser, when] : watch->accusers) message_to(accuser).voucher = doubt;
    watch->accusers.clear();
  }
  if (absence_) {
    ++absence_->clean_probes;
    check_absence(now);
    return;
  }
  compare_sum(from, pong.sum, now);
}

void Weave::on_accusation(std::uint32_t from, const WeaveMessage::Doubt& doubt, Instant now) {
  const std::uint32_t member = roster_.find(doubt.name);
  if (member == Roster::kNone || doubt.number < roster_.at(member).number) return;
  if (member == Roster::kSelf) {
    if (!accused_ || now - *accused_ > kUnheardMax) accused_ = now;
    return;
  }
  Watch* watch = watch_of(member);
  if (watch == nullptr) return;
  watch->accusers[from] = now;
  if (watch->deadline == kNever) probe(*watch, now);
  decide(*watch, now);
}

void Weave::on_voucher(const WeaveMessage::Doubt& doubt) {
  const std::uint32_t member = roster_.find(doubt.name);
  const Watch* watch = member == Roster::kNone ? nullptr : watch_of(member);
  if (watch != nullptr && watch->accused_since) doubt_itself(1);
}

// This node was held up: what it has not heard meanwhile may be waiting to be read.
void Weave::note_late(Instant now) {
  ++stats_.late;
  awake_since_ = now;
  due_ = kNever;
  doubt_itself(2);
  for (Watch& watch : watches_) {
    watch.deadline = kNever;
    watch.silent_since.reset();
    watch.accused_since.reset();
    watch.decide_at = kNever;
    watch.accusers.clear();
    watch.next_probe = std::max(watch.next_probe, now + std::chrono::milliseconds(random_.below(100)));
  }
  accused_.reset();
  if (absence_) {
    absence_->clean_probes = 0;
    absence_->clean_since = now;
  }
}

void Weave::begin_absence(std::uint64_t number, Duration heard_for, Instant now) {
  const bool was_cut_off = now - silence_ended_ < kCutOffMax;
  const bool is_deaf = heard_for >= kDeaf && !was_cut_off;
  if (absence_) {
    absence_->number = std::max(absence_->number, number);
    // It was told that we are deaf, from before we heard of it.
    if (heard_for >= now - absence_->begun + kDeaf && !was_cut_off) {
      absence_->quarantine = std::max(absence_->quarantine, options_.one_way_quarantine);
    }
    return;
  }
  ++stats_.absences;
  while (!removals_.empty() && now - removals_.front() > kRemovalMemory) removals_.pop_front();
  const bool is_mute =
      accused_ && now - *accused_ <= kUnheardMax && now - awake_since_ >= kAwake && !was_cut_off;
  Duration quarantine{};
  if (is_deaf || is_mute) {
    quarantine = options_.one_way_quarantine;
  } else if (!removals_.empty()) {
    quarantine = options_.repeat_quarantine;
  }
  for (std::size_t i = 1; i < removals_.size(); ++i) quarantine = std::min(quarantine * 2, kQuarantineMax);
  removals_.push_back(now);
  accused_.reset();
  absence_ = Absence{number, now, now, 0, quarantine};
  // Whom this node removed lately it may have removed because of its own trouble.
  roster_.for_each_other([&](std::uint32_t i, const Roster::Member& member) {
    if (!member.online && !member.left && now - member.offline_since < kRetryFor) roster_.unbury(i);
  });
  for (Watch& watch : watches_) {
    watch.silent_since.reset();
    watch.accused_since.reset();
    watch.decide_at = kNever;
    watch.accusers.clear();
    watch.deadline = kNever;
    watch.next_probe = now;
  }
  check_absence(now);
}

void Weave::check_absence(Instant now) {
  if (!absence_) return;
  const bool is_proved =
      absence_->clean_probes >= kTrials && now - absence_->clean_since >= absence_->quarantine;
  if (!is_proved && !watches_.empty()) return;
  const std::uint64_t number = std::max(absence_->number, roster_.at(Roster::kSelf).number) + 1;
  absence_.reset();
  raise_own(number, now);
  mismatch_since_.reset();
  last_sync_ = {};
  for (Watch& watch : watches_) watch.next_probe = std::min(watch.next_probe, now + options_.probe_period);
}

// Lost nodes are tried now and then, by few: a cut that kept two halves apart may have healed.
void Weave::retry_lost(Instant now) {
  next_retry_ = now + kRetryPeriod;
  if (roster_.online_count() == roster_.size()) return;
  std::vector<std::uint32_t> lost;
  roster_.for_each_other([&](std::uint32_t i, const Roster::Member& member) {
    if (!member.online && !member.left && member.number > 0 && now - member.offline_since < kRetryFor) {
      lost.push_back(i);
    }
  });
  if (lost.empty()) return;
  const double share =
      static_cast<double>(kRetriers * lost.size()) / static_cast<double>(roster_.online_count());
  if (random_.uniform() >= share) return;
  const Roster::Member& self = roster_.at(Roster::kSelf);
  message_to(lost[random_.below(lost.size())]).ping = {++nonce_, roster_.sum(), self.number, self.instance};
}

}  // namespace weft
