#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "broker/registry/endpoint.h"
#include "lib/random/random.h"

namespace weft {

// Draws `sample_count` endpoints (0: all, in order) and gives the one whose node measures least; the first
// below `low` wins at once. Nodes without a measure count only when none of the drawn has one: then any
// endpoint. `measure` takes a Node and gives an optional number.
template <typename Measure>
const Endpoint* least_of_sample(std::span<const Endpoint* const> endpoints, std::size_t sample_count,
                                double low, Random& random, Measure measure) {
  const bool all = sample_count == 0 || sample_count >= endpoints.size();
  const std::size_t draws = all ? endpoints.size() : sample_count;
  const Endpoint* least = nullptr;
  double least_measure = 0;
  for (std::size_t i = 0; i < draws; ++i) {
    const Endpoint* endpoint = endpoints[all ? i : random.below(endpoints.size())];
    const auto measured = measure(*endpoint->node);
    if (!measured) continue;
    const auto value = static_cast<double>(*measured);
    if (value < low) return endpoint;
    if (least == nullptr || value < least_measure) {
      least = endpoint;
      least_measure = value;
    }
  }
  return least != nullptr ? least : endpoints[random.below(endpoints.size())];
}

}  // namespace weft
