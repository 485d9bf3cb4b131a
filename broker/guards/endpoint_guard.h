#pragma once

#include "broker/guards/circuit_breaker.h"
#include "broker/guards/outlier_ejection.h"

namespace weft {

struct GuardPolicies {
  CircuitBreakerPolicy breaker;
  OutlierPolicy outlier;

  [[nodiscard]] bool enabled() const { return breaker.enabled || outlier.enabled; }
  friend bool operator==(const GuardPolicies&, const GuardPolicies&) = default;
};

// What this node has learned of an endpoint from its own calls to it. Whoever has such a call under way
// shares it: it may outlive the endpoint.
struct EndpointGuard {
  explicit EndpointGuard(const GuardPolicies& policies)
      : breaker(policies.breaker), outlier(policies.outlier) {}

  CircuitBreaker breaker;  // Fed only if its policy is on; so is the other.
  OutlierRecord outlier;
};

}  // namespace weft
