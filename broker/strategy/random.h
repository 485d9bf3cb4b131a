#pragma once

#include "broker/strategy/strategy.h"

namespace weft {

// Any of them, each as likely as the others.
class RandomStrategy final : public Strategy {
 public:
  explicit RandomStrategy(Random& random) : random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;

 private:
  Random& random_;
};

[[nodiscard]] Result<std::unique_ptr<Strategy>> make_random(const StrategyContext& context);

}  // namespace weft
