#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

using Duration = std::chrono::nanoseconds;  // A span of time; any std::chrono duration converts.

// A point in monotonic time. Only differences mean something; never the wall clock.
struct MonotonicClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
};
using Instant = MonotonicClock::time_point;

inline constexpr Instant kNever = Instant::max();

[[nodiscard]] constexpr double to_ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}
// Saturates at ±100 years, so that a number from a peer never overflows; NaN is zero.
[[nodiscard]] constexpr Duration from_ms(double ms) {
  constexpr double kMsMax = 100.0 * 365 * 24 * 3600 * 1000;
  if (!(ms == ms)) return Duration::zero();
  const double bounded = ms > kMsMax ? kMsMax : (ms < -kMsMax ? -kMsMax : ms);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(bounded));
}

}  // namespace weft
