#pragma once

#include <optional>

#include "broker/options.h"
#include "lib/error/error.h"
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
        left_(retries ? *retries : (policy.enabled ? policy.retries : 0)),
        idempotent_(idempotent) {}

  // The pause before the next try, or nothing when `error` is final. `node_lost`: the request went down with
  // its node, so nobody knows whether it ran.
  [[nodiscard]] std::optional<Duration> next(const Error& error, bool node_lost, Random& random);
  [[nodiscard]] bool may_retry() const { return left_ > 0 || (idempotent_ && !failed_over_); }
  void set_idempotent(bool idempotent) { idempotent_ = idempotent; }

 private:
  RetryPolicy policy_;
  int left_ = 0;
  int tried_ = 0;
  bool idempotent_ = false;
  bool failed_over_ = false;
};

}  // namespace weft
