#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/gossip/weave/message.h"
#include "lib/time/clock.h"

namespace weft {

// Who takes part in the weave, as one node knows it, and who its neighbours are.
//
// Nodes lie on kRings rings, on each in an order of its own that their names' digests give. On each ring a
// node is observed by the next one that is online, and observes the one before: all who know the same nodes
// agree on who observes whom, everybody has about as many observers as subjects, and the links together form
// a graph that stays connected when many nodes are lost.
//
// Members keep their index until they are forgotten. This node is member 0. Pure.
class Roster {
 public:
  static constexpr std::size_t kRings = 4;
  static constexpr std::uint32_t kSelf = 0;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Member {
    std::string name;
    std::uint64_t hash = 0;
    std::uint64_t number = 0;
    std::uint64_t content = 0;  // Version of the INFO that the owner has; 0: none.
    std::uint32_t instance = 0;
    std::uint32_t info_bytes = 0;
    bool online = false;
    bool left = false;
    Instant offline_since{};
  };

  Roster(std::string_view self, std::uint32_t instance);

  [[nodiscard]] std::uint32_t find(std::string_view name) const;  // kNone if unknown.
  [[nodiscard]] const Member& at(std::uint32_t index) const { return members_[index]; }
  // The head of a member; its name lives as long as the member.
  [[nodiscard]] WeaveHead head(std::uint32_t index) const;

  // A new member, offline with number 0.
  std::uint32_t add(std::string_view name);
  void set_online(std::uint32_t index, const WeaveHead& head);
  void set_offline(std::uint32_t index, std::uint64_t number, bool left, Instant now);
  // That it was removed counts no more: whoever holds it online is believed.
  void unbury(std::uint32_t index);
  void forget(std::uint32_t index);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t online_count() const { return online_count_; }
  // Equal sums: the same nodes online with the same numbers, as good as surely.
  [[nodiscard]] std::uint64_t sum() const { return sum_; }
  [[nodiscard]] const WeaveSums& sums() const { return sums_; }
  [[nodiscard]] static std::size_t bucket_of(const Member& member) { return member.hash >> 58; }

  // Those this node observes, those who observe it, and both. Each once, in a fixed order; never this node.
  [[nodiscard]] const std::vector<std::uint32_t>& subjects() const { return subjects_; }
  [[nodiscard]] const std::vector<std::uint32_t>& links() const { return links_; }
  // Raised when they change.
  [[nodiscard]] std::uint64_t neighbours_version() const { return neighbours_version_; }
  // The observers of any member, whether it is online or not.
  [[nodiscard]] std::vector<std::uint32_t> observers_of(std::uint32_t index) const;

  // Visits every member but this node: visit(index, member).
  template <typename Visit>
  void for_each_other(Visit&& visit) const {
    for (std::uint32_t i = 1; i < members_.size(); ++i) {
      if (!members_[i].name.empty()) visit(i, members_[i]);
    }
  }

 private:
  struct Slot {
    std::uint32_t index = kNone;
    std::uint32_t tag = 0;  // Upper half of the digest.
  };
  struct Nearest {
    std::uint32_t index = kNone;
    std::uint64_t distance = UINT64_MAX;
  };

  static std::uint64_t position(const Member& member, std::size_t ring);
  void consider(std::uint32_t index);
  void search_nearest();
  void neighbours_changed();
  void count(const Member& member);
  void put_in_index(std::uint32_t index);
  void rebuild_index();

  std::deque<Member> members_;  // Forgotten ones have no name. A deque: heads point to names.
  std::vector<std::uint32_t> free_;
  std::vector<Slot> slots_;  // Open addressing over members_.
  std::size_t size_ = 0;
  std::size_t online_count_ = 0;
  std::uint64_t sum_ = 0;
  WeaveSums sums_{};
  std::array<Nearest, kRings> before_;
  std::array<Nearest, kRings> after_;
  std::vector<std::uint32_t> subjects_;
  std::vector<std::uint32_t> links_;
  std::uint64_t neighbours_version_ = 0;
};

}  // namespace weft
