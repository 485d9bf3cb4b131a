#include "broker/strategy/shard_ring.h"

#include <algorithm>
#include <cmath>

namespace weft {

bool less_by_utf16(std::string_view a, std::string_view b) {
  const auto [at, bt] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at == a.end() || bt == b.end()) return at == a.end() && bt != b.end();
  const auto x = static_cast<unsigned char>(*at);
  const auto y = static_cast<unsigned char>(*bt);
  // Characters above U+FFFF begin with 0xf0 and more in UTF-8, and with a surrogate in UTF-16, which sorts
  // before U+E000–U+FFFF (0xee, 0xef). Everywhere else both orders are the same.
  const bool x_is_pair = x >= 0xf0;
  const bool y_is_pair = y >= 0xf0;
  if (x_is_pair != y_is_pair && x >= 0xee && y >= 0xee) return x_is_pair;
  return x < y;
}

void ShardRing::build(std::span<const Endpoint* const> endpoints) {
  slots_.clear();
  slots_.reserve(endpoints.size());
  for (std::size_t i = 0; i < endpoints.size(); ++i) slots_.push_back({endpoints[i], i});
  std::stable_sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) {
    return less_by_utf16(a.endpoint->node->id, b.endpoint->node->id);
  });
  slice_ = static_cast<double>(ring_size_) / static_cast<double>(last());
}

std::uint64_t ShardRing::bound(std::uint64_t position) const {
  if (position == last()) return ring_size_;
  return static_cast<std::uint64_t>(std::floor(slice_ * static_cast<double>(position)));
}

std::uint64_t ShardRing::position_of(std::uint64_t hash) const {
  std::uint64_t first = 1;
  std::uint64_t last_candidate = last();
  while (first < last_candidate) {  // The first position whose bound is not below the hash.
    const std::uint64_t middle = first + (last_candidate - first) / 2;
    if (bound(middle) >= hash) {
      last_candidate = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace weft
