#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "lib/time/clock.h"

namespace weft {

// How long calls take: the duration that a share of them stays below. Exact to a fifth, from four
// microseconds to an hour; weighs the last thousand calls or so.
//
// Pure; allocates nothing.
class LatencyQuantile {
 public:
  static constexpr std::uint32_t kSamplesMin = 20;

  void add(Duration took) {
    ++counts_[bucket_of(took)];
    if (++total_ < kSamplesMax) return;
    total_ = 0;
    for (std::uint16_t& count : counts_) total_ += (count /= 2);
  }
  // `share` in (0, 1]; nothing before kSamplesMin calls.
  [[nodiscard]] std::optional<Duration> at(double share) const {
    if (total_ < kSamplesMin) return std::nullopt;
    const double wanted = std::max(share * total_, 1.0);
    std::uint32_t below = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      below += counts_[bucket];
      if (below >= wanted) return upper_end(bucket);
    }
    return upper_end(kBuckets - 1);
  }

 private:
  static constexpr std::uint32_t kSamplesMax = 1000;
  static constexpr std::size_t kOctaves = 32;  // Of microseconds, each in four parts.
  static constexpr std::size_t kBuckets = kOctaves * 4;

  static std::size_t bucket_of(Duration took) {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count() / 1000, 1));
    const auto octave = static_cast<std::size_t>(std::bit_width(us)) - 1;
    if (octave >= kOctaves) return kBuckets - 1;
    return octave * 4 + static_cast<std::size_t>(((us << 2) >> octave) & 3U);
  }
  static Duration upper_end(std::size_t bucket) {
    const std::uint64_t parts = (4 + bucket % 4 + 1) << (bucket / 4);  // Quarters of a microsecond.
    return Duration(static_cast<std::int64_t>(parts * 250));
  }

  std::array<std::uint16_t, kBuckets> counts_{};
  std::uint32_t total_ = 0;
};

}  // namespace weft
