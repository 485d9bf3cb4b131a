#pragma once

#include <cstdint>

#include "broker/registry/node.h"

namespace weft {

// A node that offers an action (or subscribes to an event in a group): what a strategy chooses from.
//
// Lives in an endpoint list of the registry, at a fixed address while it is there.
struct Endpoint {
  Node* node = nullptr;
  bool local = false;
  bool available = true;         // False while something (a breaker) has taken it out.
  std::uint32_t in_flight = 0;   // Calls of this node that wait for its answer.
  std::uint64_t generation = 0;  // Of the registration that last named it.
};

}  // namespace weft
