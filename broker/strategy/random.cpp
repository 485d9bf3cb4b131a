#include "broker/strategy/random.h"

#include "broker/strategy/option_reader.h"

namespace weft {

const Endpoint* RandomStrategy::select(std::span<const Endpoint* const> endpoints, const Selection&) {
  return endpoints[random_.below(endpoints.size())];
}

Result<std::unique_ptr<Strategy>> make_random(const StrategyContext& context) {
  if (auto known = OptionReader("Random", context.options).finish(); !known) return known.error();
  return std::make_unique<RandomStrategy>(context.random);
}

}  // namespace weft
