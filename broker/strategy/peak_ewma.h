#pragma once

#include "broker/strategy/strategy.h"

namespace weft {

struct PeakEwmaOptions {
  std::size_t sample_count = 2;                        // 0: all.
  Duration decay = std::chrono::seconds(10);           // In which a latency loses all but 1/e of its weight.
  Duration failure_penalty = std::chrono::seconds(1);  // A failure counts as an answer that took so long.
};

// The one that will answer soonest, of two drawn at random: the one of least latency times calls under way.
//
// The latency of an endpoint is a moving average weighted by time that takes each peak over at once and
// forgets it slowly: the "peak EWMA" of Finagle's load balancer (Twitter, class PeakEwma, 2014; compared with
// round robin and least loaded in Steve Jenson's "Beyond Round Robin: Load Balancing for Latency", Linkerd,
// 2016). Three things differ from what is published there:
// - The age of the oldest unanswered call counts as a latency: an endpoint that hangs is avoided after some
//   times its usual latency, not when its first call has timed out.
// - A failure counts as a slow answer: an endpoint that refuses at once does not look like the quickest.
// - One that has never answered gets one call, and no more until that is answered.
class PeakEwmaStrategy final : public Strategy {
 public:
  PeakEwmaStrategy(const PeakEwmaOptions& options, Random& random);
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;
  void on_ended(Endpoint& endpoint, Ending ending, Instant begun, Instant now) override;

 private:
  [[nodiscard]] double cost(const Endpoint& endpoint, Instant now) const;
  // What is left of a weight after the time from `then` to `now`.
  [[nodiscard]] double remaining(Instant then, Instant now) const;

  PeakEwmaOptions options_;
  double decay_rate_;  // Per nanosecond.
  Random& random_;
};

// Options: sampleCount, decay (s), failurePenalty (ms).
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_peak_ewma(const StrategyContext& context);

}  // namespace weft
