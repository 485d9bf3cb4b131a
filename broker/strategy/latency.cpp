#include "broker/strategy/latency.h"

#include "broker/strategy/least_of_sample.h"
#include "broker/strategy/option_reader.h"

namespace weft {

const Endpoint* LatencyStrategy::select(std::span<const Endpoint* const> endpoints, const Selection&) {
  return least_of_sample(endpoints, options_.sample_count, options_.low_latency_ms, random_,
                         [](const Node& node) { return node.latency_ms; });
}

Result<LatencyOptions> read_latency_options(const Value& options) {
  OptionReader reader("Latency", options);
  LatencyOptions out;
  out.sample_count = static_cast<std::size_t>(reader.integer("sampleCount", 5, 0, 1'000'000));
  out.low_latency_ms = reader.number("lowLatency", out.low_latency_ms, 0, 3'600'000);
  out.collect_count = static_cast<std::size_t>(reader.integer("collectCount", 5, 1, 1000));
  out.ping_interval = from_ms(reader.number("pingInterval", 10, 0.1, 86'400) * 1000);
  if (auto read = reader.finish(); !read) return read.error();
  return out;
}

Result<std::unique_ptr<Strategy>> make_latency(const StrategyContext& context) {
  auto options = read_latency_options(context.options);
  if (!options) return options.error();
  return std::make_unique<LatencyStrategy>(*options, context.random);
}

}  // namespace weft
