#pragma once

#include <array>
#include <cstdint>

#include "lib/time/clock.h"

namespace weft {

// Counts the calls of the last `span` and those among them that failed. Kept in ten slices: a call falls out
// when it is between nine tenths of the span and the whole span old.
//
// Pure; time is passed in and does not run backwards.
class RollingWindow {
 public:
  explicit RollingWindow(Duration span)
      : slice_(span / kSlices > Duration::zero() ? span / kSlices : Duration(1)) {}

  void add(bool failed, Instant now) {
    roll(now);
    Counts& slice = slices_[static_cast<std::size_t>(newest_ % kSlices)];
    ++slice.calls;
    ++total_.calls;
    if (!failed) return;
    ++slice.failures;
    ++total_.failures;
  }
  // Forgets what has become too old.
  void roll(Instant now) {
    const std::int64_t current = now.time_since_epoch() / slice_;
    if (current - newest_ >= kSlices) {
      clear();
      newest_ = current;
    }
    while (newest_ < current) {
      Counts& slice = slices_[static_cast<std::size_t>(++newest_ % kSlices)];
      total_.calls -= slice.calls;
      total_.failures -= slice.failures;
      slice = {};
    }
  }
  void clear() {
    slices_ = {};
    total_ = {};
  }

  // As of the last add() or roll().
  [[nodiscard]] std::uint32_t calls() const { return total_.calls; }
  [[nodiscard]] std::uint32_t failures() const { return total_.failures; }
  [[nodiscard]] double failure_rate() const {
    return total_.calls == 0 ? 0 : static_cast<double>(total_.failures) / total_.calls;
  }

 private:
  static constexpr int kSlices = 10;
  struct Counts {
    std::uint32_t calls = 0;
    std::uint32_t failures = 0;
  };

  Duration slice_;
  std::int64_t newest_ = 0;  // Number of the slice that add() counts in.
  std::array<Counts, kSlices> slices_{};
  Counts total_;
};

}  // namespace weft
