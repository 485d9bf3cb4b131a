#include "broker/strategy/position_cache.h"

#include <functional>

namespace weft {

std::uint64_t PositionCache::find(std::string_view key) {
  if (entries_.empty() || key.size() > kKeyBytesMax) return 0;
  const std::size_t hash = std::hash<std::string_view>()(key);
  for (Index at = buckets_[hash & (buckets_.size() - 1)]; at != kNone; at = entries_[at].next_in_bucket) {
    Entry& entry = entries_[at];
    if (entry.hash != hash || entry.key != key) continue;
    entry.used = true;
    return entry.position;
  }
  return 0;
}

void PositionCache::insert(std::string_view key, std::uint64_t position) {
  if (capacity_ == 0 || key.size() > kKeyBytesMax) return;
  auto index = static_cast<Index>(entries_.size());
  if (entries_.size() < capacity_) {
    entries_.emplace_back();
  } else {
    index = take_unused();
  }
  Entry& entry = entries_[index];
  entry.key = key;
  entry.position = position;
  entry.hash = std::hash<std::string_view>()(key);
  entry.used = false;
  if (entries_.size() > buckets_.size()) {
    grow_buckets();
  } else {
    put_in_bucket(index);
  }
}

void PositionCache::clear() {
  entries_.clear();
  buckets_.clear();
  hand_ = 0;
}

void PositionCache::put_in_bucket(Index index) {
  Index& bucket = buckets_[entries_[index].hash & (buckets_.size() - 1)];
  entries_[index].next_in_bucket = bucket;
  bucket = index;
}

void PositionCache::take_from_bucket(Index index) {
  Index* link = &buckets_[entries_[index].hash & (buckets_.size() - 1)];
  while (*link != index) link = &entries_[*link].next_in_bucket;
  *link = entries_[index].next_in_bucket;
}

PositionCache::Index PositionCache::take_unused() {
  const auto advance = [this] {
    const Index at = hand_;
    hand_ = static_cast<Index>((hand_ + 1) % entries_.size());
    return at;
  };
  Index at = advance();
  while (entries_[at].used) {  // Ends after one round at the latest.
    entries_[at].used = false;
    at = advance();
  }
  take_from_bucket(at);
  return at;
}

void PositionCache::grow_buckets() {
  buckets_.assign(buckets_.empty() ? 16 : buckets_.size() * 2, kNone);
  for (Index i = 0; i < entries_.size(); ++i) put_in_bucket(i);
}

}  // namespace weft
