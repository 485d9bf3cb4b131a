#include "broker/gossip/weave/roster.h"

#include <algorithm>

#include "lib/base/assert.h"

namespace weft {

namespace {

// The finalizer of splitmix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a.
  for (const char each : text) hash = (hash ^ static_cast<std::uint8_t>(each)) * 0x100000001b3ULL;
  return mix(hash);
}

void add_once(std::vector<std::uint32_t>& list, std::uint32_t index) {
  if (index != Roster::kNone && std::find(list.begin(), list.end(), index) == list.end())
    list.push_back(index);
}

}  // namespace

Roster::Roster(std::string_view self, std::uint32_t instance) : slots_(16) {
  const std::uint32_t index = add(self);
  WEFT_ASSERT(index == kSelf);
  set_online(kSelf, {.name = self, .number = 1, .content = 1, .instance = instance, .online = true});
}

std::uint32_t Roster::find(std::string_view name) const {
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t hash = digest(name);
  for (std::size_t at = hash & mask; slots_[at].index != kNone; at = (at + 1) & mask) {
    if (slots_[at].tag == hash >> 32 && members_[slots_[at].index].name == name) return slots_[at].index;
  }
  return kNone;
}

WeaveHead Roster::head(std::uint32_t index) const {
  const Member& member = members_[index];
  return {.name = member.name,
          .number = member.number,
          .content = std::min(member.content, member.number),
          .instance = member.instance,
          .info_bytes = member.info_bytes,
          .online = member.online,
          .left = member.left};
}

std::uint32_t Roster::add(std::string_view name) {
  std::uint32_t index = static_cast<std::uint32_t>(members_.size());
  if (free_.empty()) {
    members_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  members_[index] = Member{};
  members_[index].name = name;
  members_[index].hash = digest(name);
  ++size_;
  if (2 * size_ > slots_.size()) {
    rebuild_index();
  } else {
    put_in_index(index);
  }
  return index;
}

void Roster::put_in_index(std::uint32_t index) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = members_[index].hash & mask;
  while (slots_[at].index != kNone) at = (at + 1) & mask;
  slots_[at] = {index, static_cast<std::uint32_t>(members_[index].hash >> 32)};
}

void Roster::rebuild_index() {
  std::size_t count = slots_.size();
  while (2 * size_ > count) count *= 2;
  slots_.assign(count, {});
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].name.empty()) put_in_index(i);
  }
}

// Adds what is online to the sums, or takes it out: the same operation.
void Roster::count(const Member& member) {
  const std::uint64_t word = mix(member.hash ^ mix(member.number * 0x9e3779b97f4a7c15ULL + member.instance));
  sum_ ^= word;
  sums_[bucket_of(member)] ^= static_cast<std::uint32_t>(word);
}

void Roster::set_online(std::uint32_t index, const WeaveHead& head) {
  Member& member = members_[index];
  const bool is_new = !member.online;
  if (!is_new) count(member);
  member.number = head.number;
  member.content = head.content;
  member.instance = head.instance;
  member.info_bytes = head.info_bytes;
  member.online = true;
  member.left = false;
  count(member);
  if (!is_new) return;
  ++online_count_;
  if (index != kSelf) consider(index);
}

void Roster::set_offline(std::uint32_t index, std::uint64_t number, bool left, Instant now) {
  WEFT_ASSERT(index != kSelf);
  Member& member = members_[index];
  const bool was_online = member.online;
  if (was_online) count(member);
  member.number = number;
  member.online = false;
  member.left = left;
  if (!was_online) return;
  member.offline_since = now;
  --online_count_;
  if (std::find(links_.begin(), links_.end(), index) != links_.end()) search_nearest();
}

void Roster::unbury(std::uint32_t index) {
  Member& member = members_[index];
  if (!member.online && member.number > 0)
    member.number = std::max<std::uint64_t>(member.number, 3) - 2;  // It was raised by one.
}

void Roster::forget(std::uint32_t index) {
  if (index == kSelf) return;
  if (members_[index].online) set_offline(index, members_[index].number, false, {});
  members_[index] = Member{};
  free_.push_back(index);
  --size_;
  rebuild_index();
}

std::uint64_t Roster::position(const Member& member, std::size_t ring) {
  return mix(member.hash + (ring + 1) * 0x9e3779b97f4a7c15ULL);
}

void Roster::consider(std::uint32_t index) {
  bool changed = false;
  for (std::size_t ring = 0; ring < kRings; ++ring) {
    const std::uint64_t after = position(members_[index], ring) - position(members_[kSelf], ring);
    if (after < after_[ring].distance) {
      after_[ring] = {index, after};
      changed = true;
    }
    if (0 - after < before_[ring].distance) {
      before_[ring] = {index, 0 - after};
      changed = true;
    }
  }
  if (changed) neighbours_changed();
}

void Roster::search_nearest() {
  before_.fill({});
  after_.fill({});
  for (std::size_t ring = 0; ring < kRings; ++ring) {
    const std::uint64_t own = position(members_[kSelf], ring);
    for (std::uint32_t i = 1; i < members_.size(); ++i) {
      if (!members_[i].online) continue;
      const std::uint64_t after = position(members_[i], ring) - own;
      if (after < after_[ring].distance) after_[ring] = {i, after};
      if (0 - after < before_[ring].distance) before_[ring] = {i, 0 - after};
    }
  }
  neighbours_changed();
}

void Roster::neighbours_changed() {
  ++neighbours_version_;
  subjects_.clear();
  links_.clear();
  for (const Nearest& each : before_) add_once(subjects_, each.index);
  for (const Nearest& each : before_) add_once(links_, each.index);
  for (const Nearest& each : after_) add_once(links_, each.index);
}

std::vector<std::uint32_t> Roster::observers_of(std::uint32_t index) const {
  std::vector<std::uint32_t> observers;
  for (std::size_t ring = 0; ring < kRings; ++ring) {
    const std::uint64_t own = position(members_[index], ring);
    Nearest nearest;
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].online || i == index) continue;
      const std::uint64_t after = position(members_[i], ring) - own;
      if (after < nearest.distance) nearest = {i, after};
    }
    add_once(observers, nearest.index);
  }
  return observers;
}

}  // namespace weft
