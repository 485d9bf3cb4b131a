#pragma once

#include <string>
#include <string_view>

#include "broker/registry/node.h"
#include "broker/strategy/option_reader.h"

namespace weft {

struct WeightOptions {
  std::string weight_key = "weight";  // A path into the metadata of a node.
  Duration slow_start{};  // How long a newcomer takes to its full weight. Zero: it has it at once.
};

inline constexpr double kWeightMin = 0.001;
inline constexpr double kWeightMax = 1'000'000;

// Options: weightKey, slowStart (s).
[[nodiscard]] WeightOptions read_weight_options(OptionReader& reader);

// What a node's metadata says it can bear, as a multiple of what others can: 1 when it says nothing, or
// nothing sensible. 0: it is to get nothing as long as there are others.
[[nodiscard]] double weight_of(const Node& node, std::string_view weight_key);

// What part of its weight a node that came at `since` has at `now`: a tenth at first, all after `slow_start`.
[[nodiscard]] double warmth(Instant since, Instant now, Duration slow_start);

}  // namespace weft
