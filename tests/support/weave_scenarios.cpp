#include "tests/support/weave_scenarios.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace weft::test {

namespace {

using namespace std::chrono_literals;
using Index = WeaveSim::Index;

constexpr Duration kSettle = 5s;

Index draw_alive(WeaveSim& sim) {
  while (true) {
    const auto node = static_cast<Index>(sim.random().below(sim.size()));
    if (sim.is_alive(node)) return node;
  }
}

std::uint64_t number_of(WeaveSim& sim, Index node) {
  return sim.weave(node).roster().at(Roster::kSelf).number;
}

void append(std::vector<Duration>& to, const std::vector<Duration>& times) {
  to.insert(to.end(), times.begin(), times.end());
}

void settle(WeaveSim& sim) {
  (void)sim.run_until([&] { return sim.converged(); }, 2min, 100ms);
  sim.run_for(kSettle);
}

}  // namespace

Duration percentile(const std::vector<Duration>& times, double p) {
  if (times.empty()) return {};
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(times.size())));
  return times[std::clamp<std::size_t>(rank, 1, times.size()) - 1];
}

Duration join_through_one(WeaveSim& sim, std::size_t count, Duration limit) {
  const Index seed = sim.add();
  const Instant begun = sim.now();
  for (std::size_t i = 1; i < count; ++i) sim.join(sim.add(), seed);
  return sim.run_until([&] { return sim.converged(); }, limit) ? sim.now() - begun : limit;
}

News measure_news(WeaveSim& sim, int rounds) {
  News news;
  for (int round = 0; round < rounds; ++round) {
    const Index changed = draw_alive(sim);
    Instant since = sim.now();
    sim.change_service(changed);
    append(news.service, sim.spread(changed, WeaveSim::Wait::kOnlineAs, number_of(sim, changed), since, 30s));
    settle(sim);

    const Index seed = draw_alive(sim);
    since = sim.now();
    const Index added = sim.add();
    sim.join(added, seed);
    append(news.newcomer, sim.spread(added, WeaveSim::Wait::kOnlineAs, 1, since, 30s));
    (void)sim.run_until([&] { return sim.converged(); }, 30s, 1ms);
    news.newcomer_sees_all.push_back(sim.now() - since);
    settle(sim);

    const Index dead = draw_alive(sim);
    since = sim.now();
    sim.kill(dead);
    append(news.dead, sim.spread(dead, WeaveSim::Wait::kGone, 1, since, 30s));
    settle(sim);

    const Index hung = added;  // One that never hung before: that makes a difference.
    since = sim.now();
    sim.freeze(hung);
    append(news.hung, sim.spread(hung, WeaveSim::Wait::kGone, 1, since, 30s));
    sim.run_for(5s);
    since = sim.now();
    sim.thaw(hung);
    append(news.hung_is_back, sim.spread(hung, WeaveSim::Wait::kOnlineAs, 1, since, 60s));
    settle(sim);
  }
  for (auto* times :
       {&news.service, &news.newcomer, &news.newcomer_sees_all, &news.dead, &news.hung, &news.hung_is_back}) {
    std::sort(times->begin(), times->end());
  }
  return news;
}

double bytes_at_rest(WeaveSim& sim, Duration span) {
  settle(sim);
  std::size_t alive = 0;
  for (Index i = 0; i < sim.size(); ++i) alive += sim.is_alive(i) ? 1 : 0;
  const std::uint64_t before = sim.bytes_sent();
  sim.run_for(span);
  return static_cast<double>(sim.bytes_sent() - before) / (to_ms(span) / 1000) / static_cast<double>(alive);
}

std::string_view to_string(Torture torture) {
  switch (torture) {
    case Torture::kLossBothWays:
      return "1 % lose 80 % both ways";
    case Torture::kLossInwards:
      return "1 % lose 80 % inwards";
    case Torture::kDeafFlipFlop:
      return "1 % deaf, 20 s flip-flop";
    case Torture::kMuteFlipFlop:
      return "1 % mute, 20 s flip-flop";
    case Torture::kPartition:
      return "10 nodes cut off";
    case Torture::kFrozenQuarter:
      return "a quarter freezes for 2-6 s";
  }
  return {};
}

TortureOutcome torture(WeaveSim& sim, Torture kind, Duration span) {
  settle(sim);
  TortureOutcome outcome;
  std::vector<Index> alive;
  for (Index i = 0; i < sim.size(); ++i) {
    if (sim.is_alive(i)) alive.push_back(i);
  }
  outcome.faulty = std::max<std::size_t>(alive.size() / 100, 1);
  if (kind == Torture::kPartition) outcome.faulty = std::min<std::size_t>(10, alive.size() / 4);
  if (kind == Torture::kFrozenQuarter) outcome.faulty = alive.size() / 4;
  for (std::size_t i = 0; i < outcome.faulty; ++i) {
    std::swap(alive[i], alive[i + sim.random().below(alive.size() - i)]);
  }
  const std::vector<Index> faulty(alive.begin(), alive.begin() + static_cast<std::ptrdiff_t>(outcome.faulty));

  const Instant begun = sim.now();
  const Instant end = begun + span;
  const std::uint64_t wrong_before = sim.wrong_removals();
  const auto set_loss = [&](Index node, double in, double out) {
    sim.faults(node).loss_in = in;
    sim.faults(node).loss_out = out;
  };
  const auto random_span = [&](Duration least, Duration most) {
    return least + Duration(static_cast<Duration::rep>(
                       sim.random().below(static_cast<std::size_t>((most - least).count()))));
  };
  std::map<Index, std::function<void()>> freezes;
  for (const Index node : faulty) {
    sim.set_faulty(node, true);
    switch (kind) {
      case Torture::kLossBothWays:
        set_loss(node, 0.8, 0.8);
        break;
      case Torture::kLossInwards:
        set_loss(node, 0.8, 0);
        break;
      case Torture::kDeafFlipFlop:
      case Torture::kMuteFlipFlop: {
        const bool deaf = kind == Torture::kDeafFlipFlop;
        for (Instant when = begun; when < end; when += 40s) {
          sim.at(when, [=] { set_loss(node, deaf ? 1 : 0, deaf ? 0 : 1); });
          sim.at(when + 20s, [=] { set_loss(node, 0, 0); });
        }
        break;
      }
      case Torture::kPartition:
        sim.faults(node).side = 1;
        break;
      case Torture::kFrozenQuarter:
        freezes[node] = [&, node] {
          if (sim.now() >= end) return;
          sim.freeze(node);
          const Instant thaw = std::min(sim.now() + random_span(2s, 6s), end);
          sim.at(thaw, [&, node] { sim.thaw(node); });
          sim.at(thaw + random_span(1s, 3s), freezes[node]);
        };
        sim.at(begun + random_span(0s, 3s), freezes[node]);
        break;
    }
  }

  // Who holds which faulty node offline; and how often it came back there.
  std::map<Index, std::size_t> rank;
  for (const Index node : faulty) rank.emplace(node, rank.size());
  std::vector<bool> is_healthy(sim.size(), false);
  for (std::size_t i = outcome.faulty; i < alive.size(); ++i) is_healthy[alive[i]] = true;
  std::vector<std::set<Index>> removed_at(faulty.size());
  std::vector<std::map<Index, int>> returns(faulty.size());
  const std::size_t pairs = faulty.size() * (alive.size() - faulty.size());
  std::size_t removed = 0;
  outcome.all_removed = span;
  sim.on_change = [&](Index who, Index whom, bool online, std::uint64_t) {
    const auto found = rank.find(whom);
    if (found == rank.end() || !is_healthy[who] || sim.now() >= end) return;
    if (online) {
      if (removed_at[found->second].contains(who)) {
        outcome.returns_max = std::max(outcome.returns_max, ++returns[found->second][who]);
      }
    } else if (removed_at[found->second].insert(who).second && ++removed == pairs) {
      outcome.all_removed = sim.now() - begun;
    }
  };
  sim.run_for(span);
  sim.on_change = nullptr;
  for (const Index node : faulty) {
    sim.faults(node) = {};
    sim.thaw(node);
  }
  outcome.recovered =
      sim.run_until([&] { return sim.converged(); }, 6min, 100ms) ? sim.now() - end : Duration(6min);
  outcome.wrong_removals = sim.wrong_removals() - wrong_before;
  for (const Index node : faulty) sim.set_faulty(node, false);
  return outcome;
}

}  // namespace weft::test
