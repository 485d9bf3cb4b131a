#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/sim/sim_world.h"

namespace weft::swarm {

// The laws that a run has broken. The first few are kept: what follows is mostly their consequence.
class Verdict {
 public:
  explicit Verdict(SimWorld& world) : world_(world) {}

  void broken(std::string_view law, std::string_view what) {
    std::string line = "BROKEN LAW: " + std::string(law) + ": " + std::string(what);
    world_.note("law", line);
    const double seconds = std::chrono::duration<double>(world_.elapsed()).count();
    if (broken_.size() < kKept) broken_.push_back("at " + std::to_string(seconds) + " s: " + std::move(line));
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return broken_; }

 private:
  static constexpr std::size_t kKept = 5;
  SimWorld& world_;
  std::vector<std::string> broken_;
};

}  // namespace weft::swarm
