#include "broker/strategy/weights.h"

#include <algorithm>

namespace weft {

WeightOptions read_weight_options(OptionReader& reader) {
  WeightOptions options;
  if (std::string key = reader.text("weightKey"); !key.empty()) options.weight_key = std::move(key);
  options.slow_start = from_ms(reader.number("slowStart", 0, 0, 86'400) * 1000);
  return options;
}

double weight_of(const Node& node, std::string_view weight_key) {
  const Value* given = node.metadata.find_path(weight_key);
  if (given == nullptr || !given->is_number()) return 1;
  const double weight = given->f64();
  if (!(weight >= 0)) return 1;  // NaN as well.
  return weight == 0 ? 0 : std::clamp(weight, kWeightMin, kWeightMax);
}

double warmth(Instant since, Instant now, Duration slow_start) {
  constexpr double kAtFirst = 0.1;
  const Duration age = now - since;
  if (age >= slow_start) return 1;
  return std::max(kAtFirst, to_ms(age) / to_ms(slow_start));
}

}  // namespace weft
