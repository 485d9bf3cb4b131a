#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/registry/endpoint.h"
#include "lib/error/result.h"
#include "lib/protocol/payload.h"
#include "lib/random/random.h"

namespace weft {

// What a strategy may look at besides the endpoints: the call (or event) that is to be placed.
struct Selection {
  const Payload& params;  // An event's payload for an event.
  const Payload& meta;
};

// Chooses the endpoint of a call. One object for each action, and for each event and group, so that each has
// a rotation of its own.
//
// Thread: loop thread only. No allocation and no search in select(): it runs for every call.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // `endpoints` are the available ones in order of registration, never empty. Gives one of them.
  [[nodiscard]] virtual const Endpoint* select(std::span<const Endpoint* const> endpoints,
                                               const Selection& selection) = 0;
  // The list of endpoints is another one now, or a node came, went or was updated.
  virtual void on_endpoints_changed() {}
};

// What a strategy is made from.
struct StrategyContext {
  Random& random;        // Borrowed; outlives the strategy.
  const Value& options;  // The strategy's options, or null. Valid while it is made.
};

// Makes a strategy, or a BrokerOptionsError that says which option is wrong and what is allowed.
using StrategyFactory = std::function<Result<std::unique_ptr<Strategy>>(const StrategyContext&)>;

// The strategies by name: weft's own and the user's.
class StrategyTable {
 public:
  StrategyTable();  // RoundRobin, Random, CpuUsage, Latency, Shard.

  // Adds or replaces.
  void add(std::string_view name, StrategyFactory factory);
  // An unknown name is a BrokerOptionsError that lists what there is.
  [[nodiscard]] Result<std::unique_ptr<Strategy>> make(std::string_view name, const Value& options,
                                                       Random& random) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::map<std::string, StrategyFactory, std::less<>> factories_;
};

}  // namespace weft
