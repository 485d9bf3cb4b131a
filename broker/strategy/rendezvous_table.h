#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/registry/endpoint.h"

namespace weft {

inline constexpr std::size_t kRendezvousSlots = 1 << 17;

// Which endpoint a hash belongs to: a pure function of the names and weights of the nodes, so that all
// callers agree without a word.
//
// Hashes fall into `slots`, and each slot belongs to the endpoint that scores best for it: -ln(u) / weight, u
// being a number in (0, 1] made from slot and node name. A node that leaves gives up its slots and no other
// changes hands. The best of a slot is sought when the slot is first asked for and remembered then: what a
// look costs later depends neither on the endpoints nor on the keys there are. A node's share is its weight's
// to within sqrt(n / slots) for n nodes.
class RendezvousTable {
 public:
  RendezvousTable(std::size_t slots, std::string weight_key)
      : slots_(slots), weight_key_(std::move(weight_key)) {}

  // Takes over the list. What is remembered is kept if names and weights are the same.
  void update(std::span<const Endpoint* const> endpoints);
  // The place in the list of the endpoint that `hash` belongs to.
  [[nodiscard]] std::size_t find(std::uint64_t hash);

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] const Endpoint* endpoint(std::size_t at) const { return members_[at].endpoint; }
  // Of the sum of all.
  [[nodiscard]] double share(std::size_t at) const { return members_[at].weight / weights_; }

 private:
  using Index = std::uint16_t;
  static constexpr Index kUnknown = UINT16_MAX;

  struct Member {
    const Endpoint* endpoint;  // Compared, and followed only while it is in the list.
    std::uint64_t hash;        // Of the node's name.
    double weight;
  };

  [[nodiscard]] std::size_t best_of(std::uint64_t slot) const;

  std::size_t slots_;
  std::string weight_key_;
  double weights_ = 0;  // Their sum.
  std::vector<Member> members_;
  std::vector<Member> former_;  // What update() compares with.
  std::vector<Index> owners_;   // Of each slot; empty when there are too many members to be numbered.
};

// A hash of bytes, the same on every machine. Not for secrets.
[[nodiscard]] std::uint64_t hash_of_text(std::string_view text);

}  // namespace weft
