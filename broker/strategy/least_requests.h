#pragma once

#include "broker/strategy/strategy.h"

namespace weft {

struct LeastRequestsOptions {
  std::size_t sample_count = 2;  // 0: all.
};

// The one with the fewest calls of this node under way, of two drawn at random: nearly as even as looking at
// all, and without the rush of all callers on the one that looks idle (Mitzenmacher, "The Power of Two
// Choices in Randomized Load Balancing", 2001).
class LeastRequestsStrategy final : public Strategy {
 public:
  LeastRequestsStrategy(const LeastRequestsOptions& options, Random& random)
      : options_(options), random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;

 private:
  LeastRequestsOptions options_;
  Random& random_;
};

// Options: sampleCount.
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_least_requests(const StrategyContext& context);

}  // namespace weft
