// Membership in meshes of many nodes, simulated: what docs/scaling.md shows.
//
//   membership_bench [--seed N] [--rounds N] [--torture SECONDS] [--settled] [NODES …]
//
// --settled: the nodes know one another from the start instead of joining through one, which saves most of
// the time that thousands take.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/support/weave_scenarios.h"

namespace {

using namespace weft;
using namespace weft::test;
using namespace std::chrono_literals;

int misses = 0;

void row(std::string_view what, const std::string& found, std::string_view claim, bool holds) {
  std::printf("| %-34.*s | %-24s | %-22.*s | %s |\n", static_cast<int>(what.size()), what.data(),
              found.c_str(), static_cast<int>(claim.size()), claim.data(), holds ? "yes" : "NO");
  std::fflush(stdout);
  if (!holds) ++misses;
}

std::string ms(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, time < 1s ? "%.0f ms" : "%.2f s",
                time < 1s ? to_ms(time) : to_ms(time) / 1000);
  return text;
}

std::string spread(const std::vector<Duration>& times) {
  return ms(percentile(times, 0.5)) + " / " + ms(percentile(times, 0.99)) + " / " + ms(percentile(times, 1));
}

void news_row(std::string_view what, const std::vector<Duration>& times, Duration p99_max, Duration all_max) {
  const std::string claim = (p99_max == all_max ? "" : "p99 " + ms(p99_max) + ", ") + "max " + ms(all_max);
  row(what, spread(times), claim, percentile(times, 0.99) <= p99_max && percentile(times, 1) <= all_max);
}

void run(std::size_t nodes, std::uint64_t seed, int rounds, int torture_seconds, bool settled) {
  const auto begun = std::chrono::steady_clock::now();
  std::printf("\n%zu nodes, seed %llu\n\n", nodes, static_cast<unsigned long long>(seed));
  std::printf("| %-34s | %-24s | %-22s | %s |\n|---|---|---|---|\n", "", "found (p50 / p99 / max)", "claimed",
              "holds");
  WeaveSim sim(seed);
  if (settled) {
    sim.add_settled(nodes);
    const bool agrees = sim.run_until([&] { return sim.converged(); }, 30s);
    row("all know one another", agrees ? "yes" : "no", "-", agrees);
  } else {
    const Duration joined = join_through_one(sim, nodes, 60s);
    row("all join through one, at once", ms(joined), nodes <= 2000 ? "10 s" : "-",
        nodes > 2000 || joined <= 10s);
  }
  sim.run_for(5s);
  const News news = measure_news(sim, rounds);
  news_row("new service known", news.service, 150ms, 250ms);
  news_row("new node known", news.newcomer, 150ms, 250ms);
  row("new node knows all", spread(news.newcomer_sees_all), "-", true);
  news_row("dead process known", news.dead, 500ms, 500ms);
  news_row("hung process known", news.hung, 2500ms, 30s);
  row("hung process is back", spread(news.hung_is_back), "-", true);
  const double rest = bytes_at_rest(sim, 20s);
  row("sent at rest", std::to_string(static_cast<int>(rest)) + " B/s a node", "1024 B/s", rest <= 1024);
  if (torture_seconds > 0) {
    const std::string span = "for " + std::to_string(torture_seconds) + " s";
    std::printf("\n| %-34s | %-24s | %-22s | %s |\n|---|---|---|---|\n", span.c_str(),
                "wrong, all gone, returns", "0 wrong, gone in 30 s", "holds");
    for (const Torture kind : kTortures) {
      const TortureOutcome outcome = torture(sim, kind, std::chrono::seconds(torture_seconds));
      row(to_string(kind),
          std::to_string(outcome.wrong_removals) + ", " + ms(outcome.all_removed) + ", " +
              std::to_string(outcome.returns_max),
          "recovered in " + ms(outcome.recovered),
          outcome.wrong_removals == 0 && outcome.all_removed <= 30s && outcome.returns_max <= 1);
    }
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  std::printf("\n%.0f s of simulated time in %.1f s, %llu events\n",
              to_ms(sim.now().time_since_epoch() - std::chrono::seconds(1000)) / 1000,
              std::chrono::duration<double>(took).count(), static_cast<unsigned long long>(sim.events_run()));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  int rounds = 5;
  int torture_seconds = 90;
  bool settled = false;
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--torture") == 0 && i + 1 < argc) {
      torture_seconds = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--settled") == 0) {
      settled = true;
    } else if (const std::size_t nodes = std::strtoull(argv[i], nullptr, 10); nodes >= 2) {
      sizes.push_back(nodes);
    } else {
      std::fprintf(
          stderr,
          "usage: membership_bench [--seed N] [--rounds N] [--torture SECONDS] [--settled] [NODES ...]\n");
      return 2;
    }
  }
  if (sizes.empty()) sizes = {100, 1000, 5000};
  for (const std::size_t nodes : sizes) run(nodes, seed, rounds, torture_seconds, settled);
  std::printf(misses == 0 ? "\nAll claims hold.\n" : "\n%d claims do not hold.\n", misses);
  return misses == 0 ? 0 : 1;
}
