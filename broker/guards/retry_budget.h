#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "broker/guards/policies.h"

namespace weft {

// How many further tries may be made: a token bucket that calls fill, `ratio` of a token each, so that tries
// stay in proportion to traffic when everything fails. A second, small one is filled by time, for rates so
// low that the first would hold nothing; what traffic fills into the one is not filled into the other, so the
// longer run has the greater of the two rates and not their sum.
//
// Pure. Counting a call is one increment; everything else waits until a try is asked for.
class RetryBudget {
 public:
  RetryBudget(const BudgetPolicy& policy, Instant now)
      : policy_(policy), reserve_(reserve_max()), settled_(now) {}

  // A call is made (its first try).
  void on_call() { ++calls_; }
  // Takes a token for one further try; false when there is none.
  [[nodiscard]] bool take(Instant now) {
    if (!policy_.enabled) return true;
    settle(now);
    double& bucket = earned_ >= 1 ? earned_ : reserve_;
    if (bucket < 1) return false;
    bucket -= 1;
    return true;
  }

 private:
  [[nodiscard]] double reserve_max() const {
    return policy_.min_per_second > 0 ? std::max(policy_.min_per_second, 1.0) : 0.0;
  }
  void settle(Instant now) {
    const double earned = policy_.ratio * static_cast<double>(std::exchange(calls_, 0));
    const double by_time = policy_.min_per_second * to_ms(now - std::exchange(settled_, now)) / 1000;
    earned_ = std::min(earned_ + earned, policy_.burst);
    reserve_ = std::min(reserve_ + std::max(by_time - earned, 0.0), reserve_max());
  }

  BudgetPolicy policy_;
  std::uint64_t calls_ = 0;  // Since `settled_`.
  double earned_ = 0;
  double reserve_;
  Instant settled_;
};

}  // namespace weft
