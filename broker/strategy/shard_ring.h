#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "broker/registry/endpoint.h"

namespace weft {

// The ring of consistent hashing that all nodes of a mesh agree on: the endpoints by node name, in rounds of
// `vnodes`, in equal slices of `ring_size`. A pure function of the names: the order of discovery never
// matters.
//
// Positions count from 1 to last(); none is stored, each is arithmetic. Endpoints are borrowed.
class ShardRing {
 public:
  struct Slot {
    const Endpoint* endpoint;
    std::size_t list_index;  // Where it stood in the list the ring was built from.
  };

  ShardRing(std::size_t vnodes, std::uint64_t ring_size) : vnodes_(vnodes), ring_size_(ring_size) {}

  void build(std::span<const Endpoint* const> endpoints);
  void clear() { slots_.clear(); }
  [[nodiscard]] bool empty() const { return slots_.empty(); }

  [[nodiscard]] std::uint64_t last() const { return slots_.size() * vnodes_; }
  // The largest hash that belongs to `position`.
  [[nodiscard]] std::uint64_t bound(std::uint64_t position) const;
  [[nodiscard]] const Slot& slot(std::uint64_t position) const {
    return slots_[(position - 1) % slots_.size()];
  }
  // The position a hash below ring_size belongs to.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t hash) const;

 private:
  std::size_t vnodes_;
  std::uint64_t ring_size_;
  double slice_ = 0;
  std::vector<Slot> slots_;  // In order of names, by UTF-16 code units.
};

// Whether JavaScript sorts `a` before `b` (both UTF-8): by UTF-16 code units.
[[nodiscard]] bool less_by_utf16(std::string_view a, std::string_view b);

}  // namespace weft
