#pragma once

#include <cstddef>

namespace weft {

// How much work of other nodes is under way here: bounded, so that nobody can fill this process with it.
// Thread: loop thread only.
class ServedLoad {
 public:
  ServedLoad(std::size_t count_max, std::size_t bytes_max) : count_max_(count_max), bytes_max_(bytes_max) {}

  // False: there is no room for this one.
  [[nodiscard]] bool take(std::size_t bytes) {
    if (count_ >= count_max_ || bytes > bytes_max_ - bytes_) return false;
    ++count_;
    bytes_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) {
    --count_;
    bytes_ -= bytes;
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t count_max() const { return count_max_; }

 private:
  std::size_t count_max_;
  std::size_t bytes_max_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace weft
