#include "broker/guards/policies.h"

#include <algorithm>

namespace weft {

namespace {

void read(bool& field, const Value& value) {
  if (value.is_bool()) field = value.boolean();
}

void read_share(double& field, const Value& value, double max) {
  if (value.is_number() && value.f64() > 0 && value.f64() <= max) field = value.f64();
}

void read_count(std::size_t& field, const Value& value, std::int64_t min) {
  if (!value.is_number()) return;
  const std::int64_t count = value.i64_or(-1);
  if (count >= min && count <= INT32_MAX) field = static_cast<std::size_t>(count);
}

void read_duration(Duration& field, const Value& value, double ms_of_unit) {
  if (value.is_number() && value.f64() > 0) field = from_ms(value.f64() * ms_of_unit);
}

}  // namespace

RetryPolicy overlaid(RetryPolicy base, const Value& definition) {
  constexpr std::size_t kRetriesMax = 100;  // A peer's word.
  read(base.enabled, definition["enabled"]);
  auto retries = static_cast<std::size_t>(base.retries);
  read_count(retries, definition["retries"], 0);
  base.retries = static_cast<int>(std::min(retries, kRetriesMax));
  read_duration(base.delay, definition["delay"], 1);
  read_duration(base.max_delay, definition["maxDelay"], 1);
  if (const Value& factor = definition["factor"]; factor.is_number() && factor.f64() >= 1)
    base.factor = factor.f64();
  return base;
}

CircuitBreakerPolicy overlaid(CircuitBreakerPolicy base, const Value& definition) {
  read(base.enabled, definition["enabled"]);
  read_share(base.threshold, definition["threshold"], 1);
  read_duration(base.window, definition["windowTime"], 1000);
  read_count(base.min_request_count, definition["minRequestCount"], 1);
  read_duration(base.half_open_time, definition["halfOpenTime"], 1);
  return base;
}

OutlierPolicy overlaid(OutlierPolicy base, const Value& definition) {
  read(base.enabled, definition["enabled"]);
  read_count(base.consecutive_failures, definition["consecutiveFailures"], 0);
  read_share(base.failure_rate, definition["failureRate"], 1);
  read_duration(base.window, definition["windowTime"], 1000);
  read_count(base.min_request_count, definition["minRequestCount"], 0);
  read_duration(base.ejection_time, definition["ejectionTime"], 1);
  read_duration(base.ejection_time_max, definition["ejectionTimeMax"], 1);
  read_share(base.max_ejection_percent, definition["maxEjectionPercent"], 100);
  return base;
}

Value to_definition(const RetryPolicy& policy) {
  return Value{{"enabled", policy.enabled},
               {"retries", policy.retries},
               {"delay", to_ms(policy.delay)},
               {"maxDelay", to_ms(policy.max_delay)},
               {"factor", policy.factor}};
}

Value to_definition(const CircuitBreakerPolicy& policy) {
  return Value{{"enabled", policy.enabled},
               {"threshold", policy.threshold},
               {"windowTime", to_ms(policy.window) / 1000},
               {"minRequestCount", policy.min_request_count},
               {"halfOpenTime", to_ms(policy.half_open_time)}};
}

Value to_definition(const OutlierPolicy& policy) {
  return Value{{"enabled", policy.enabled},
               {"consecutiveFailures", policy.consecutive_failures},
               {"failureRate", policy.failure_rate},
               {"windowTime", to_ms(policy.window) / 1000},
               {"minRequestCount", policy.min_request_count},
               {"ejectionTime", to_ms(policy.ejection_time)},
               {"ejectionTimeMax", to_ms(policy.ejection_time_max)},
               {"maxEjectionPercent", policy.max_ejection_percent}};
}

Value to_definition(const BulkheadPolicy& policy) {
  return Value{
      {"enabled", policy.enabled}, {"concurrency", policy.concurrency}, {"maxQueueSize", policy.queue_max}};
}

}  // namespace weft
