// Catching up: INFOs that are wanted, and tables that differ.

#include <algorithm>
#include <unordered_map>

#include "broker/gossip/weave/weave.h"

namespace weft {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAskedMax = 64;  // INFOs on their way here at a time.
constexpr Duration kAnswerMax = 300ms;
constexpr std::size_t kSourcesMax = 4;
constexpr int kBucketsAtOnce = 8;
// Tables that differ while news is on its way are no matter yet.
constexpr Duration kQuiet = 500ms;
constexpr Duration kDifferMax = 3s;
constexpr Duration kSyncGap = 1s;
constexpr Duration kTombstoneLife = 10min;

std::uint64_t bit(std::size_t bucket) {
  return std::uint64_t{1} << bucket;
}

}  // namespace

void Weave::want(std::uint32_t member, const WeaveHead& head, std::uint32_t from) {
  const auto [entry, is_new] = wants_.try_emplace(member);
  Want& want = entry->second;
  if (is_new) want_queue_.push_back(member);
  if (is_new || head.number > want.head.number) {
    want.head = head;
    want.head.name = roster_.at(member).name;
  }
  if (want.sources.size() < kSourcesMax &&
      std::find(want.sources.begin(), want.sources.end(), from) == want.sources.end()) {
    want.sources.push_back(from);
  }
}

void Weave::pump_wants(Instant now) {
  while (!want_queue_.empty() && asked_.size() < kAskedMax) {
    const std::uint32_t member = want_queue_.front();
    want_queue_.pop_front();
    const auto found = wants_.find(member);
    if (found == wants_.end()) continue;
    Want& want = found->second;
    if (want.next_source >= want.sources.size()) {  // All were asked in vain. Tables that differ will tell.
      wants_.erase(found);
      if (roster_.at(member).number == 0) forget(std::string(roster_.at(member).name));
      continue;
    }
    message_to(want.sources[want.next_source++]).wants.push_back(roster_.at(member).name);
    want.asked = now;
    asked_.push_back(member);
  }
}

void Weave::tick_wants(Instant now) {
  std::erase_if(asked_, [&](std::uint32_t member) {
    const auto found = wants_.find(member);
    if (found == wants_.end() || !found->second.asked) return true;
    if (now - *found->second.asked < kAnswerMax) return false;
    found->second.asked.reset();
    want_queue_.push_back(member);
    return true;
  });
}

void Weave::on_wants(std::uint32_t from, const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    if (infos_out_[from].size() >= kAskedMax) return;
    const std::uint32_t member = roster_.find(name);
    if (member == Roster::kNone || !roster_.at(member).online || roster_.at(member).content == 0) continue;
    if (member == Roster::kSelf && absence_) continue;
    infos_out_[from].push_back(member);
  }
}

void Weave::on_infos(std::uint32_t from, const std::vector<WeaveHead>& heads, std::size_t infos,
                     Instant now) {
  for (std::size_t i = 0; i < heads.size() && i < infos; ++i) {
    const WeaveHead& head = heads[i];
    const std::uint32_t member = find_or_add(head.name);
    if (member == Roster::kNone || member == Roster::kSelf || !head.online) continue;
    const auto wanted = wants_.find(member);
    if (wanted != wants_.end() && wanted->second.head.number <= head.number) wants_.erase(wanted);
    std::erase(asked_, member);
    const Roster::Member& known = roster_.at(member);
    if (head.number <= known.number) continue;
    go_online(member, head, i, from);
    last_change_ = now;
  }
}

void Weave::compare_sum(std::uint32_t from, std::uint64_t sum, Instant now) {
  if (absence_ || !roster_.at(from).online) return;
  if (sum == roster_.sum()) {
    mismatch_since_.reset();
    caught_up_ = true;
    return;
  }
  if (!mismatch_since_) mismatch_since_ = now;
  if (sync_) return;
  const bool is_due = now - last_change_ > kQuiet || now - *mismatch_since_ > kDifferMax;
  if (caught_up_ && (!wants_.empty() || !is_due || now - last_sync_ < kSyncGap)) return;
  sync_ = Sync{from, 0, now};
  last_sync_ = now;
  ++stats_.syncs;
  message_to(from).sums = roster_.sums();
}

void Weave::on_sums(std::uint32_t from, const WeaveSums& sums) {
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != roster_.sums()[i]) differing |= bit(i);
  }
  message_to(from).differing = differing;
}

void Weave::on_differing(std::uint32_t from, std::uint64_t which, Instant now) {
  if (!sync_ || sync_->peer != from) return;
  sync_->todo = which;
  fetch_next(now);
}

void Weave::fetch_next(Instant now) {
  if (sync_->todo == 0) {
    sync_.reset();
    caught_up_ = true;
    mismatch_since_.reset();
    return;
  }
  std::uint64_t next = 0;
  for (int i = 0; i < kBucketsAtOnce && sync_->todo != 0; ++i) {
    const std::uint64_t lowest = sync_->todo & (0 - sync_->todo);
    next |= lowest;
    sync_->todo &= ~lowest;
  }
  sync_->waiting_since = now;
  message_to(sync_->peer).get = next;
}

void Weave::on_get(std::uint32_t from, std::uint64_t which, Instant now) {
  auto& buckets = message_to(from).buckets.emplace();
  for (int i = 0; i < kBucketsAtOnce && which != 0; ++i) {
    buckets.which |= which & (0 - which);
    which &= which - 1;
  }
  which = buckets.which;
  if ((which & bit(Roster::bucket_of(roster_.at(Roster::kSelf)))) != 0 && !absence_) {
    buckets.heads.push_back(roster_.head(Roster::kSelf));
  }
  roster_.for_each_other([&](std::uint32_t i, const Roster::Member& member) {
    if ((which & bit(Roster::bucket_of(member))) == 0 || member.number == 0) return;
    if (member.online || now - member.offline_since < kTombstoneLife)
      buckets.heads.push_back(roster_.head(i));
  });
}

void Weave::on_buckets(std::uint32_t from, const WeaveMessage::Buckets& buckets, Instant now) {
  std::unordered_map<std::string_view, const WeaveHead*> theirs;
  for (const WeaveHead& head : buckets.heads) {
    theirs.emplace(head.name, &head);
    take(head, from, now);
  }
  if (!sync_ || sync_->peer != from) return;
  // What the other lacks.
  const auto offer = [&](std::uint32_t i, const Roster::Member& member) {
    if ((buckets.which & bit(Roster::bucket_of(member))) == 0 || member.number == 0 || i == from) return;
    const auto found = theirs.find(member.name);
    const bool is_newer = found == theirs.end() ? member.online
                                                : member.number > found->second->number ||
                                                      (member.number == found->second->number &&
                                                       !member.online && found->second->online);
    if (is_newer) message_to(from).news.push_back(roster_.head(i));
  };
  offer(Roster::kSelf, roster_.at(Roster::kSelf));
  roster_.for_each_other(offer);
  fetch_next(now);
}

}  // namespace weft
