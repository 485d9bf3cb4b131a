#pragma once

#include "broker/strategy/strategy.h"

namespace weft {

// One after the other, in order of registration. The default.
class RoundRobinStrategy final : public Strategy {
 public:
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;

 private:
  std::size_t next_ = 0;
};

[[nodiscard]] Result<std::unique_ptr<Strategy>> make_round_robin(const StrategyContext& context);

}  // namespace weft
