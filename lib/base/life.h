#pragma once

#include <memory>
#include <utility>

namespace weft {

// Guards callbacks that may come back after their object is gone: guard(f) is f while this lives, and nothing
// after.
class Life {
 public:
  Life() : token_(std::make_shared<char>()) {}
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  template <typename F>
  [[nodiscard]] auto guard(F callback) const {
    return [weak = std::weak_ptr<char>(token_), callback = std::move(callback)](auto&&... args) mutable {
      if (!weak.expired()) callback(std::forward<decltype(args)>(args)...);
    };
  }

 private:
  std::shared_ptr<char> token_;
};

}  // namespace weft
