#pragma once

#include <cstdint>
#include <utility>

#include "lib/time/clock.h"

namespace weft {

// Lets one thing pass in each pause and counts the others: log lines that a peer can provoke must not fill
// the disk. Pure.
class Throttle {
 public:
  explicit Throttle(Duration pause = std::chrono::seconds(1)) : pause_(pause) {}

  [[nodiscard]] bool pass(Instant now) {
    if (last_ != Instant() && now - last_ < pause_) {
      ++held_;
      return false;
    }
    last_ = now;
    return true;
  }
  // How many were held back since the last one that passed before this one.
  [[nodiscard]] std::uint64_t take_held() { return std::exchange(held_, 0); }

 private:
  Duration pause_;
  Instant last_{};
  std::uint64_t held_ = 0;
};

}  // namespace weft
