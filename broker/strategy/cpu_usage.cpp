#include "broker/strategy/cpu_usage.h"

#include "broker/strategy/least_of_sample.h"
#include "broker/strategy/option_reader.h"

namespace weft {

const Endpoint* CpuUsageStrategy::select(std::span<const Endpoint* const> endpoints, const Selection&) {
  return least_of_sample(endpoints, options_.sample_count, options_.low_cpu_usage, random_,
                         [](const Node& node) { return node.cpu; });
}

Result<std::unique_ptr<Strategy>> make_cpu_usage(const StrategyContext& context) {
  OptionReader reader("CpuUsage", context.options);
  CpuUsageOptions options;
  options.sample_count = static_cast<std::size_t>(reader.integer("sampleCount", 3, 0, 1'000'000));
  options.low_cpu_usage = reader.number("lowCpuUsage", options.low_cpu_usage, 0, 100);
  if (auto read = reader.finish(); !read) return read.error();
  return std::make_unique<CpuUsageStrategy>(options, context.random);
}

}  // namespace weft
