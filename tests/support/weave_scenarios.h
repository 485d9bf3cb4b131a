#pragma once

#include <string_view>
#include <vector>

#include "tests/support/weave_sim.h"

namespace weft::test {

// What the weave claims, measured in a WeaveSim.

// Times in order; the share `p` of them is at most this.
[[nodiscard]] Duration percentile(const std::vector<Duration>& times, double p);

// `count` processes start at once and join through the first. How long until each sees exactly the others;
// `limit` if they do not.
Duration join_through_one(WeaveSim& sim, std::size_t count, Duration limit);

// `rounds` times: a node drawn at random changes its service, a new one joins, a process dies, one hangs and
// goes on, and all others learn of it. The mesh is at peace before and after each.
struct News {
  std::vector<Duration> service;
  std::vector<Duration> newcomer;
  std::vector<Duration> newcomer_sees_all;
  std::vector<Duration> dead;
  std::vector<Duration> hung;
  std::vector<Duration> hung_is_back;  // Since it went on.
};
[[nodiscard]] News measure_news(WeaveSim& sim, int rounds);

// Bytes a node sends in a second while nothing happens, on average.
[[nodiscard]] double bytes_at_rest(WeaveSim& sim, Duration span);

enum class Torture {
  kLossBothWays,   // 1 % of the nodes lose 80 % of what they send and of what they are sent.
  kLossInwards,    // The same of what they are sent only.
  kDeafFlipFlop,   // 1 % hear nothing for 20 s, then all is well for 20 s, and so on.
  kMuteFlipFlop,   // The same, and nothing of them is heard.
  kPartition,      // 10 nodes are cut off from the others.
  kFrozenQuarter,  // A quarter of the nodes freeze for 2 to 6 s, run for 1 to 3 s, and so on.
};
inline constexpr Torture kTortures[] = {Torture::kLossBothWays, Torture::kLossInwards,
                                        Torture::kDeafFlipFlop, Torture::kMuteFlipFlop,
                                        Torture::kPartition,    Torture::kFrozenQuarter};
[[nodiscard]] std::string_view to_string(Torture torture);

struct TortureOutcome {
  std::size_t faulty = 0;
  std::uint64_t wrong_removals = 0;  // Of nodes without fault, counted at each node that took part in it.
  // When the last node without fault held the last faulty one offline for the first time; `span` if never.
  Duration all_removed{};
  int returns_max = 0;   // How often one faulty node came back at one node while its fault went on.
  Duration recovered{};  // After the end of the fault, until all see all.
};
// The fault lasts for `span`.
[[nodiscard]] TortureOutcome torture(WeaveSim& sim, Torture kind, Duration span);

}  // namespace weft::test
