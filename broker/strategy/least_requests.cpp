#include "broker/strategy/least_requests.h"

#include "broker/strategy/least_of_sample.h"
#include "broker/strategy/option_reader.h"

namespace weft {

const Endpoint* LeastRequestsStrategy::select(std::span<const Endpoint* const> endpoints, const Selection&) {
  return cheapest_of_sample(endpoints, options_.sample_count, random_,
                            [](const Endpoint& endpoint) { return endpoint.in_flight(); });
}

Result<std::unique_ptr<Strategy>> make_least_requests(const StrategyContext& context) {
  OptionReader reader("LeastRequests", context.options);
  LeastRequestsOptions options;
  options.sample_count = static_cast<std::size_t>(reader.integer("sampleCount", 2, 0, 1'000'000));
  if (auto read = reader.finish(); !read) return read.error();
  return std::make_unique<LeastRequestsStrategy>(options, context.random);
}

}  // namespace weft
