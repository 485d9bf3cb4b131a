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
  Instant now{};
};

// How an attempt ended.
enum class Ending : std::uint8_t {
  kAnswered,   // With a result, or an error that is the caller's own fault.
  kFailed,     // Timed out, lost with its node, refused, or an error of the service.
  kAbandoned,  // The caller lost interest: the answer would have taken longer still.
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
  // An attempt that began on `endpoint` at `begun` has ended. Not for calls that run in line on this node.
  virtual void on_ended(Endpoint& /*endpoint*/, Ending /*ending*/, Instant /*begun*/, Instant /*now*/) {}
  // The list of endpoints is another one now, or a node came, went or was updated.
  virtual void on_endpoints_changed() {}
};

// Ends a flight, if it is under way and its endpoint still there, and tells the strategy of the endpoint.
void land(Flight& flight, Ending ending, Instant now);

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
  StrategyTable();  // Those of docs/strategies.md.

  // Adds or replaces.
  void add(std::string_view name, StrategyFactory factory);
  // An unknown name is a BrokerOptionsError that lists what there is.
  [[nodiscard]] Result<std::unique_ptr<Strategy>> make(std::string_view name, const Value& options,
                                                       Random& random) const;
  [[nodiscard]] std::vector<std::string> names() const;
  // Whether Moleculer has a strategy of this name.
  [[nodiscard]] static bool is_moleculers(std::string_view name);

 private:
  std::map<std::string, StrategyFactory, std::less<>> factories_;
};

}  // namespace weft
