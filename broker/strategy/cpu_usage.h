#pragma once

#include "broker/strategy/strategy.h"

namespace weft {

struct CpuUsageOptions {
  std::size_t sample_count = 3;  // 0: all.
  double low_cpu_usage = 10;     // Percent.
};

// The node with the least load of the processors among a few drawn at random.
class CpuUsageStrategy final : public Strategy {
 public:
  CpuUsageStrategy(const CpuUsageOptions& options, Random& random) : options_(options), random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;

 private:
  CpuUsageOptions options_;
  Random& random_;
};

// Options: sampleCount, lowCpuUsage.
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_cpu_usage(const StrategyContext& context);

}  // namespace weft
