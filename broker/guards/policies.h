#pragma once

#include <chrono>
#include <cstddef>

#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

struct RetryPolicy {
  bool enabled = false;
  int retries = 5;  // After the first try.
  Duration delay = std::chrono::milliseconds(100);
  Duration max_delay = std::chrono::seconds(1);
  double factor = 2.0;
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

// Takes an endpoint out of the choice when too many of the calls to it fail.
struct CircuitBreakerPolicy {
  bool enabled = false;
  double threshold = 0.5;                              // Share of failures that opens it …
  Duration window = std::chrono::seconds(60);          // … among the calls of this long …
  std::size_t min_request_count = 20;                  // … and never with fewer calls than this.
  Duration half_open_time = std::chrono::seconds(10);  // From open to the one call that probes.
  friend bool operator==(const CircuitBreakerPolicy&, const CircuitBreakerPolicy&) = default;
};

// Takes those endpoints of an action out of the choice, for a while, that fail where others do not.
struct OutlierPolicy {
  bool enabled = false;
  std::size_t consecutive_failures = 5;        // In a row; 0: rows do not count.
  double failure_rate = 0.5;                   // Share of failures …
  Duration window = std::chrono::seconds(10);  // … among the calls of this long …
  std::size_t min_request_count = 20;          // … if there were as many as this; 0: rates do not count.
  Duration ejection_time = std::chrono::seconds(10);     // Grows by as much with every further ejection …
  Duration ejection_time_max = std::chrono::minutes(5);  // … up to this.
  double max_ejection_percent = 50;                      // Of an action's endpoints, never more.
  friend bool operator==(const OutlierPolicy&, const OutlierPolicy&) = default;
};

// How many further tries (or hedges) calls may cause, by traffic.
struct BudgetPolicy {
  bool enabled = true;
  double ratio = 0.2;          // Further tries for each call …
  double min_per_second = 10;  // … but at least so many, for low rates.
  double burst = 100;          // At most so many are saved up.
};

// What an idempotent handler's results are remembered by: see CallOptions::idempotency_key.
struct IdempotencyPolicy {
  Duration ttl = std::chrono::minutes(5);    // How long a result is kept; 0: keys are passed over.
  std::size_t entries_max = 10'000;          // The oldest result goes first when there are more …
  std::size_t bytes_max = 16 * 1024 * 1024;  // … or when they are larger, all together.
};

// How many runs of a handler there are at once, and how many wait.
struct BulkheadPolicy {
  bool enabled = false;
  std::size_t concurrency = 10;
  std::size_t queue_max = 100;  // 0: nobody waits.
};

// A policy as an action's definition changes it: fields of `definition` (as in INFO; from a peer, so of any
// kind) go before those of `base`; what makes no sense is passed over.
[[nodiscard]] RetryPolicy overlaid(RetryPolicy base, const Value& definition);
[[nodiscard]] CircuitBreakerPolicy overlaid(CircuitBreakerPolicy base, const Value& definition);
[[nodiscard]] OutlierPolicy overlaid(OutlierPolicy base, const Value& definition);

// What stands in a definition for a policy.
[[nodiscard]] Value to_definition(const RetryPolicy& policy);
[[nodiscard]] Value to_definition(const CircuitBreakerPolicy& policy);
[[nodiscard]] Value to_definition(const OutlierPolicy& policy);
[[nodiscard]] Value to_definition(const BulkheadPolicy& policy);

}  // namespace weft
