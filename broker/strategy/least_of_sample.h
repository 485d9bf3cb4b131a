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

// Draws `sample_count` endpoints, the second never the first again (0: all), and gives the one of least
// `cost`, a function of an Endpoint; among equals the first drawn.
template <typename Cost>
const Endpoint* cheapest_of_sample(std::span<const Endpoint* const> endpoints, std::size_t sample_count,
                                   Random& random, Cost cost) {
  const std::size_t size = endpoints.size();
  const bool all = sample_count == 0 || sample_count >= size;
  const std::size_t draws = all ? size : sample_count;
  const std::size_t first = random.below(size);
  const Endpoint* cheapest = endpoints[first];
  auto least = cost(*cheapest);
  for (std::size_t i = 1; i < draws; ++i) {
    std::size_t at = all ? first + i : random.below(size - (i == 1 ? 1 : 0));
    if (all && at >= size) at -= size;
    if (!all && i == 1 && at >= first) ++at;
    const auto value = cost(*endpoints[at]);
    if (value < least) {
      cheapest = endpoints[at];
      least = value;
    }
  }
  return cheapest;
}

}  // namespace weft
