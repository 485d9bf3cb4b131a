#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class CallRecord;

// Requests that wait for an answer, found by the id on the wire without a table of texts: the id holds the
// place and its generation, so a late or forged id finds nothing.
//
// Pure; thread: loop thread only.
class PendingRequests {
 public:
  static constexpr std::size_t kIdSize = 36;  // UUID-shaped text.

  // `mask` spreads the ids of different nodes and incarnations apart: take it from a random source.
  explicit PendingRequests(std::uint64_t mask_high, std::uint64_t mask_low)
      : mask_high_(mask_high), mask_low_(mask_low) {}

  // Gives a place and writes the id of the request to `id` (kIdSize characters).
  std::uint32_t add(CallRecord* call, char* id);
  // The call of an id that came back, or nothing.
  [[nodiscard]] CallRecord* find(std::string_view id) const;
  void remove(std::uint32_t slot);
  [[nodiscard]] std::size_t size() const { return size_; }

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.call != nullptr) visit(slot.call);
    }
  }

 private:
  struct Slot {
    CallRecord* call = nullptr;
    std::uint32_t generation = 0;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;
  std::size_t size_ = 0;
  std::uint64_t mask_high_;
  std::uint64_t mask_low_;
};

}  // namespace weft
