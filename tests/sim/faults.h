#pragma once

#include <cstddef>
#include <vector>

#include "lib/time/clock.h"
#include "tests/sim/plan.h"

namespace weft::swarm {

class Swarm;

// What is disturbed, and was lately: laws about healthy nodes hold for the others.
class Trouble {
 public:
  explicit Trouble(std::size_t nodes) : nodes_(nodes) {}

  void begin(std::size_t node);
  void end(std::size_t node, Instant now);
  void begin_all();
  void end_all(Instant now);

  [[nodiscard]] bool is_calm(std::size_t node, Instant now, Duration span) const {
    return nodes_[node].is_calm(now, span) && all_.is_calm(now, span);
  }
  [[nodiscard]] bool is_calm_everywhere(Instant now, Duration span) const;

 private:
  struct One {
    int active = 0;
    Instant last{};
    [[nodiscard]] bool is_calm(Instant now, Duration span) const { return active == 0 && now - last >= span; }
  };
  std::vector<One> nodes_;
  One all_;  // The bus, or the wires of everyone.
};

// Sets the plan's faults going at their times, and ends each of them.
void schedule_faults(Swarm& swarm);

}  // namespace weft::swarm
