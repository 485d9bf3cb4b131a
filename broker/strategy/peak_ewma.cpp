#include "broker/strategy/peak_ewma.h"

#include <algorithm>
#include <cmath>

#include "broker/strategy/least_of_sample.h"
#include "broker/strategy/option_reader.h"

namespace weft {

namespace {

// Below it, latencies do not tell endpoints apart and calls under way decide.
constexpr double kLatencyMsMin = 0.01;
// Of one that has never answered, for each call under way.
constexpr double kUnknownMs = 1e9;

}  // namespace

PeakEwmaStrategy::PeakEwmaStrategy(const PeakEwmaOptions& options, Random& random)
    : options_(options), decay_rate_(1 / static_cast<double>(options.decay.count())), random_(random) {}

const Endpoint* PeakEwmaStrategy::select(std::span<const Endpoint* const> endpoints,
                                         const Selection& selection) {
  return cheapest_of_sample(endpoints, options_.sample_count, random_,
                            [&](const Endpoint& endpoint) { return cost(endpoint, selection.now); });
}

double PeakEwmaStrategy::remaining(Instant then, Instant now) const {
  return std::exp(-static_cast<double>(std::max(now - then, Duration::zero()).count()) * decay_rate_);
}

double PeakEwmaStrategy::cost(const Endpoint& endpoint, Instant now) const {
  if (endpoint.latency_ms < 0) return kUnknownMs * endpoint.in_flight();
  const double latency = std::max({endpoint.latency_ms * remaining(endpoint.latency_at, now),
                                   to_ms(endpoint.oldest_age(now)), kLatencyMsMin});
  return latency * (1.0 + endpoint.in_flight());
}

void PeakEwmaStrategy::on_ended(Endpoint& endpoint, Ending ending, Instant begun, Instant now) {
  Duration took = now - begun;
  if (ending == Ending::kFailed) took = std::max(took, options_.failure_penalty);
  const double latency = to_ms(took);
  double weight = remaining(endpoint.latency_at, now);
  if (endpoint.latency_ms < 0 || latency > endpoint.latency_ms * weight) {
    weight = 0;  // A peak.
  } else if (ending == Ending::kAbandoned) {
    return;  // At least so long, and that was known.
  }
  endpoint.latency_ms = endpoint.latency_ms * weight + latency * (1 - weight);
  endpoint.latency_at = now;
}

Result<std::unique_ptr<Strategy>> make_peak_ewma(const StrategyContext& context) {
  OptionReader reader("PeakEwma", context.options);
  PeakEwmaOptions options;
  options.sample_count = static_cast<std::size_t>(reader.integer("sampleCount", 2, 0, 1'000'000));
  options.decay = from_ms(reader.number("decay", 10, 0.01, 3600) * 1000);
  options.failure_penalty = from_ms(reader.number("failurePenalty", 1000, 0, 3'600'000));
  if (auto read = reader.finish(); !read) return read.error();
  return std::make_unique<PeakEwmaStrategy>(options, context.random);
}

}  // namespace weft
