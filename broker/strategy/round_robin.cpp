#include "broker/strategy/round_robin.h"

#include "broker/strategy/option_reader.h"

namespace weft {

const Endpoint* RoundRobinStrategy::select(std::span<const Endpoint* const> endpoints, const Selection&) {
  if (next_ >= endpoints.size()) next_ = 0;
  return endpoints[next_++];
}

Result<std::unique_ptr<Strategy>> make_round_robin(const StrategyContext& context) {
  if (auto known = OptionReader("RoundRobin", context.options).finish(); !known) return known.error();
  return std::make_unique<RoundRobinStrategy>();
}

}  // namespace weft
