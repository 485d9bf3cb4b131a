#pragma once

#include <optional>

#include "broker/options.h"
#include "lib/random/random.h"
#include "lib/time/clock.h"

namespace weft {

// Whether and when a failed call is tried again. Pure.
//
// Pauses grow by the policy's factor up to its ceiling, each drawn from the upper half of its range so that
// callers do not come back in step ("equal jitter", Brooker 2015). A lost node is no reason to pause: another
// one takes over.
class RetryState {
 public:
  RetryState() = default;
  RetryState(const RetryPolicy& policy, std::optional<int> retries, bool idempotent)
      : policy_(policy),
        asked_(retries.has_value()),
        left_(retries ? *retries : (policy.enabled ? policy.retries : 0)),
        idempotent_(idempotent) {}

  // What the action says of its own, for a call that has not been tried yet. A number that the call gave
  // stays.
  void use(const RetryPolicy& policy) {
    policy_ = policy;
    if (!asked_) left_ = policy.enabled ? policy.retries : 0;
  }

  // The pause before the next try, or nothing when the failure is final. `node_lost`: the request went down
  // with its node, so nobody knows whether it ran.
  [[nodiscard]] std::optional<Duration> next(bool retryable, bool node_lost, Random& random);
  [[nodiscard]] bool may_retry() const { return left_ > 0 || (idempotent_ && !failed_over_); }
  void set_idempotent(bool idempotent) { idempotent_ = idempotent; }

 private:
  RetryPolicy policy_;
  bool asked_ = false;  // The call itself says how often.
  int left_ = 0;
  int tried_ = 0;
  bool idempotent_ = false;
  bool failed_over_ = false;
};

}  // namespace weft
