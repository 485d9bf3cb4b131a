#pragma once

#include <string>

namespace weft {

// The answer of a node to a ping.
struct Pong {
  std::string node_id;
  std::string id;           // Of the ping.
  double elapsed_ms = 0;    // The round trip.
  double time_diff_ms = 0;  // How far the other clock is behind ours, as far as the round trip tells.
};

}  // namespace weft
