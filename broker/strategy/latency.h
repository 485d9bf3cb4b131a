#pragma once

#include "broker/strategy/strategy.h"
#include "lib/time/clock.h"

namespace weft {

struct LatencyOptions {
  std::size_t sample_count = 5;  // 0: all.
  double low_latency_ms = 10;
  // For the measuring, which is LatencyMonitor's and one for the whole node.
  std::size_t collect_count = 5;  // Round trips that an average is taken over.
  Duration ping_interval = std::chrono::seconds(10);
};

// Options: sampleCount, lowLatency (ms), collectCount, pingInterval (s).
[[nodiscard]] Result<LatencyOptions> read_latency_options(const Value& options);

// The node whose host answers quickest among a few drawn at random. Reads Node::latency_ms.
class LatencyStrategy final : public Strategy {
 public:
  LatencyStrategy(const LatencyOptions& options, Random& random) : options_(options), random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;

 private:
  LatencyOptions options_;
  Random& random_;
};

[[nodiscard]] Result<std::unique_ptr<Strategy>> make_latency(const StrategyContext& context);

}  // namespace weft
