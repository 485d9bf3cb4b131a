#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "broker/strategy/strategy.h"

namespace weft {

// Nodes with an endpoint each, as a strategy is handed them.
class TestEndpoints {
 public:
  explicit TestEndpoints(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) add(id);
  }
  // "n0" … "n<count-1>".
  explicit TestEndpoints(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add("n" + std::to_string(i));
  }

  void add(const std::string& id) {
    nodes_.emplace_back().id = id;
    endpoints_.emplace_back().node = &nodes_.back();
    endpoints_.back().group = &group;
    list_.push_back(&endpoints_.back());
  }
  [[nodiscard]] std::span<const Endpoint* const> list() const { return list_; }
  [[nodiscard]] Node& node(std::size_t index) { return nodes_[index]; }
  [[nodiscard]] Endpoint& operator[](std::size_t index) { return endpoints_[index]; }
  // All but the one of that name.
  [[nodiscard]] std::vector<const Endpoint*> without(std::string_view id) const {
    std::vector<const Endpoint*> rest;
    for (const Endpoint* endpoint : list_) {
      if (endpoint->node->id != id) rest.push_back(endpoint);
    }
    return rest;
  }

  EndpointGroup group;

 private:
  std::deque<Node> nodes_;
  std::deque<Endpoint> endpoints_;
  std::vector<const Endpoint*> list_;
};

inline std::string chosen(Strategy& strategy, std::span<const Endpoint* const> endpoints,
                          const Payload& params = {}, const Payload& meta = {}, Instant now = {}) {
  return strategy.select(endpoints, {params, meta, now})->node->id;
}

// How often each node is taken in `count` selections.
inline std::map<std::string, int> counts(Strategy& strategy, std::span<const Endpoint* const> endpoints,
                                         int count) {
  std::map<std::string, int> taken;
  for (int i = 0; i < count; ++i) ++taken[chosen(strategy, endpoints)];
  return taken;
}

inline std::unique_ptr<Strategy> make_strategy(std::string_view name, const Value& options, Random& random) {
  return StrategyTable().make(name, options, random).value();
}

}  // namespace weft
