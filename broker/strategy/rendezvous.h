#pragma once

#include <functional>

#include "broker/strategy/key_finder.h"
#include "broker/strategy/rendezvous_table.h"
#include "broker/strategy/strategy.h"

namespace weft {

struct RendezvousOptions {
  std::string shard_key;                       // As Shard's.
  std::function<Value(const Selection&)> key;  // Finds the key instead of shard_key.
  std::string weight_key = "weight";           // A path into the metadata of a node.
  std::size_t slots = kRendezvousSlots;
  // No endpoint gets more than so many times its fair share of this node's calls under way: the others take
  // what is above it, each key always in the same order. 0: keys never leave their endpoint.
  double load_factor = 0;
};

inline constexpr std::size_t kRendezvousSlotsMax = 1 << 22;

// The same key always goes to the same node, whichever node calls, each node gets keys by its weight, and a
// node that comes or goes moves its own keys and no others.
//
// By rendezvous hashing (Thaler, Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998) with
// weights (Schindelhauer, Schomaker, "Weighted Distributed Hash Tables", 2005), and the load bound of
// Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2018.
class RendezvousStrategy final : public Strategy {
 public:
  RendezvousStrategy(RendezvousOptions options, Random& random);
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;
  void on_endpoints_changed() override { is_current_ = false; }

 private:
  [[nodiscard]] bool may_take(const Endpoint& endpoint, double share) const;

  RendezvousOptions options_;
  Random& random_;
  KeyFinder finder_;
  RendezvousTable table_;
  bool is_current_ = false;
};

// `options.key` or shard_key; out of range numbers are a BrokerOptionsError.
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_rendezvous_strategy(RendezvousOptions options,
                                                                         Random& random);

// Options: shardKey, weightKey, slots, loadFactor.
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_rendezvous(const StrategyContext& context);

}  // namespace weft
