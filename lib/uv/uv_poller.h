#pragma once

#include "lib/net/poller.h"
#include "lib/uv/uv_loop.h"

namespace weft {

// The Poller of real programs. Watches a duplicate of the descriptor: libuv allows a descriptor once, and the
// owner may close its own at any time. The loop is borrowed and outlives it and its watches.
class UvPoller final : public Poller {
 public:
  explicit UvPoller(UvLoop& loop) : loop_(loop) {}
  [[nodiscard]] std::unique_ptr<Watch> watch(int descriptor, Handler& handler) override;

 private:
  UvLoop& loop_;
};

}  // namespace weft
