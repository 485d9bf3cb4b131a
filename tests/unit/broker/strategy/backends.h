#pragma once

#include <cstdint>
#include <functional>

#include "broker/strategy/strategy.h"
#include "tests/unit/broker/strategy/endpoints.h"

namespace weft {

// A strategy before simulated backends: calls arrive at random, take as long as a test says, and end.
struct BackendRun {
  std::size_t backends = 11;
  double calls_per_second = 1000;
  Duration length = std::chrono::seconds(60);
  Duration timeout = std::chrono::seconds(1);
  std::uint64_t seed = 1;
  // How long a call takes that begins at `now` (from zero on) on a backend.
  std::function<Duration(std::size_t backend, Duration now, Random& random)> service_time;
};

struct BackendOutcome {
  std::size_t calls = 0;
  std::size_t in_time = 0;           // Answered within the timeout.
  std::vector<std::size_t> of_each;  // Calls for each backend.
  [[nodiscard]] double in_time_percent() const {
    return 100.0 * static_cast<double>(in_time) / static_cast<double>(calls);
  }
};

[[nodiscard]] BackendOutcome run_backends(Strategy& strategy, const BackendRun& run);

}  // namespace weft
