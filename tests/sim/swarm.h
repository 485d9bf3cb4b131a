#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/sim/sim_bus.h"
#include "lib/sim/sim_world.h"
#include "tests/sim/faults.h"
#include "tests/sim/journal.h"
#include "tests/sim/plan.h"
#include "tests/sim/swarm_node.h"
#include "tests/sim/verdict.h"
#include "transporters/memory/memory_bus.h"

namespace weft::swarm {

// One run: a plan brought to life, with everything that the parts of it share.
class Swarm {
 public:
  explicit Swarm(const Plan& plan);
  ~Swarm();

  // Lets it happen: traffic under faults, then peace until the catalogues agree, a round in which everything
  // must work, and the end of all nodes.
  void run();

  const Plan plan;
  SimWorld world;
  Verdict verdict;
  Journal journal;
  std::unique_ptr<SimBus> bus;  // Null with other carriers.
  std::shared_ptr<MemoryBus> memory = std::make_shared<MemoryBus>();
  Trouble trouble;
  std::vector<std::unique_ptr<SwarmNode>> members;
  bool traffic = true;
  std::map<std::string, Instant, std::less<>>
      changed_at;              // When a service last came to or left a running node.
  Duration converged_after{};  // From the end of the faults.

  [[nodiscard]] SwarmNode* find(std::string_view name) const;
  // Neither of them, nor what lies between, was disturbed lately.
  [[nodiscard]] bool is_calm(const SwarmNode& a, const SwarmNode& b) const;

 private:
  [[nodiscard]] bool until(FunctionRef<bool()> condition, Duration limit);
  void settle();
  void end_all();
};

}  // namespace weft::swarm
