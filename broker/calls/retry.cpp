#include "broker/calls/retry.h"

#include <algorithm>
#include <cmath>

namespace weft {

std::optional<Duration> RetryState::next(bool retryable, bool node_lost, Random& random) {
  if (!retryable) return std::nullopt;
  if (left_ <= 0) {
    // An action that may run twice is moved to another node once, without asking the caller for retries.
    if (!node_lost || !idempotent_ || failed_over_) return std::nullopt;
    failed_over_ = true;
    return Duration::zero();
  }
  --left_;
  ++tried_;
  if (node_lost) return Duration::zero();
  const double growth = std::min(std::pow(policy_.factor, tried_ - 1), 1e9);  // Finite, whatever the factor.
  const double full = std::min(to_ms(policy_.delay) * growth, to_ms(policy_.max_delay));
  return from_ms(full * (0.5 + 0.5 * random.uniform()));
}

}  // namespace weft
