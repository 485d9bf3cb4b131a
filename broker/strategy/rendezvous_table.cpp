#include "broker/strategy/rendezvous_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "broker/strategy/weights.h"

namespace weft {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// The last step of splitmix64 (Steele, Lea, Flood 2014): every bit of the input reaches every bit of the
// output.
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t little_endian(const char* bytes, std::size_t size) {
  std::uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, bytes, size);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
  }
  return word;
}

}  // namespace

std::uint64_t hash_of_text(std::string_view text) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ULL;
  std::uint64_t hash = mixed(text.size() + kFactor);
  while (text.size() > 8) {
    hash = fold(hash ^ little_endian(text.data(), 8), kFactor) + kFactor;
    text.remove_prefix(8);
  }
  return mixed(hash ^ fold(little_endian(text.data(), text.size()) + kFactor, kFactor));
}

void RendezvousTable::update(std::span<const Endpoint* const> endpoints) {
  former_.swap(members_);
  members_.clear();
  weights_ = 0;
  for (const Endpoint* endpoint : endpoints) {
    const double weight = weight_of(*endpoint->node, weight_key_);
    members_.push_back({endpoint, hash_of_text(endpoint->node->id), weight});
    weights_ += weight;
  }
  if (weights_ == 0) {  // All are drained: better any than none.
    for (Member& member : members_) member.weight = 1;
    weights_ = static_cast<double>(members_.size());
  }
  const bool is_same =
      std::equal(members_.begin(), members_.end(), former_.begin(), former_.end(),
                 [](const Member& a, const Member& b) { return a.hash == b.hash && a.weight == b.weight; });
  if (is_same) return;
  owners_.assign(members_.size() < kUnknown ? slots_ : 0, kUnknown);
}

std::size_t RendezvousTable::find(std::uint64_t hash) {
  const auto slot = static_cast<std::uint64_t>((static_cast<Wide>(hash) * slots_) >> 64);
  if (owners_.empty()) return best_of(slot);
  Index& owner = owners_[slot];
  if (owner == kUnknown) owner = static_cast<Index>(best_of(slot));
  return owner;
}

std::size_t RendezvousTable::best_of(std::uint64_t slot) const {
  const std::uint64_t slot_hash = mixed(slot + 1);
  double least = std::numeric_limits<double>::max();
  std::size_t best = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const double u = (static_cast<double>(mixed(member.hash ^ slot_hash) >> 11) + 1) * 0x1.0p-53;
    if (1 - u >= least * member.weight) continue;  // -ln(u) is more than 1 - u: it needs no logarithm.
    const double score = -std::log(u) / member.weight;
    if (score < least) {
      least = score;
      best = i;
    }
  }
  return best;
}

}  // namespace weft
