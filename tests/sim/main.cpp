// Runs swarms from seeds. Every run is decided by its seed and the options below; a failure prints the
// command that replays it with the trace.

#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/sim/sim_fabric.h"
#include "tests/sim/swarm.h"

namespace weft::swarm {

namespace {

struct Settings {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  double minutes = 0;  // From `first` on, for as long.
  bool trace = false;
  bool hashes = false;
  bool verbose = false;
  bool twice = false;  // Each seed, one run after the other.
  bool stop_at_failure = false;
  PlanLimits limits;
};

std::string g_program;
volatile std::uint64_t g_seed = 0;

void print_replay(std::uint64_t seed) {
  std::fprintf(stderr, "seed %llu failed. Replay it with its trace:\n  %s --seed %llu --trace\n",
               static_cast<unsigned long long>(seed), g_program.c_str(),
               static_cast<unsigned long long>(seed));
}

// An assertion, or worse: say where, then end as the system would have it.
void on_fatal_signal(int signal) {
  print_replay(g_seed);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Totals {
  std::uint64_t seeds = 0;
  std::uint64_t failed = 0;
  std::uint64_t calls = 0;
  std::uint64_t ok_calls = 0;
  std::uint64_t events = 0;
  double simulated = 0;
};

bool run_seed(std::uint64_t seed, const Settings& settings, Totals& totals) {
  g_seed = seed;
  const Plan plan = draw_plan(seed, settings.limits);
  if (settings.verbose || settings.trace)
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), describe(plan).c_str());
  Swarm swarm(plan);
  if (settings.trace)
    swarm.world.set_trace(
        [](std::string_view line) { std::printf("%.*s\n", static_cast<int>(line.size()), line.data()); });
  swarm.run();
  ++totals.seeds;
  totals.calls += swarm.journal.calls();
  totals.ok_calls += swarm.journal.ok_calls();
  totals.events += swarm.journal.events();
  totals.simulated += std::chrono::duration<double>(swarm.world.elapsed()).count();
  if (settings.hashes)
    std::printf("%llu %016llx\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(swarm.world.trace_hash()));
  if (settings.verbose)
    std::printf("  %zu calls, %zu ok, %zu runs, %zu events, converged after %.1f s\n", swarm.journal.calls(),
                swarm.journal.ok_calls(), swarm.journal.runs(), swarm.journal.events(),
                std::chrono::duration<double>(swarm.converged_after).count());
  if (swarm.verdict.all().empty()) return true;
  ++totals.failed;
  std::fflush(stdout);
  for (const std::string& line : swarm.verdict.all()) std::fprintf(stderr, "%s\n", line.c_str());
  print_replay(seed);
  return false;
}

[[noreturn]] void usage() {
  std::fprintf(
      stderr,
      "sim_swarm [--seed N | --seeds FROM COUNT | --minutes M [--seed FROM]] [--trace] [--hashes] [--twice] "
      "[--verbose]\n"
      "          [--stop-at-failure] [--nodes N] [--rate OPS_PER_SECOND] [--no-faults] [--busy SECONDS]\n");
  std::exit(2);
}

Settings read_settings(int argc, char** argv) {
  Settings settings;
  int at = 1;
  const auto next = [&]() -> const char* {
    if (at >= argc) usage();
    return argv[at++];
  };
  while (at < argc) {
    const std::string_view option = next();
    if (option == "--seed") {
      settings.first = std::strtoull(next(), nullptr, 10);
    } else if (option == "--seeds") {
      settings.first = std::strtoull(next(), nullptr, 10);
      settings.count = std::strtoull(next(), nullptr, 10);
    } else if (option == "--minutes") {
      settings.minutes = std::strtod(next(), nullptr);
    } else if (option == "--trace") {
      settings.trace = true;
    } else if (option == "--hashes") {
      settings.hashes = true;
    } else if (option == "--verbose") {
      settings.verbose = true;
    } else if (option == "--twice") {
      settings.twice = true;
    } else if (option == "--stop-at-failure") {
      settings.stop_at_failure = true;
    } else if (option == "--nodes") {
      settings.limits.nodes = std::strtoull(next(), nullptr, 10);
    } else if (option == "--rate") {
      settings.limits.ops_per_second = std::strtod(next(), nullptr);
    } else if (option == "--no-faults") {
      settings.limits.faults = false;
    } else if (option == "--busy") {
      settings.limits.busy = from_ms(1000 * std::strtod(next(), nullptr));
    } else {
      usage();
    }
  }
  return settings;
}

int main_of(int argc, char** argv) {
  g_program = argv[0];
  const Settings settings = read_settings(argc, argv);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, on_fatal_signal);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Totals totals;
  const auto wants_more = [&](std::uint64_t done) {
    if (settings.stop_at_failure && totals.failed > 0) return false;
    return settings.minutes > 0 ? seconds() < settings.minutes * 60 : done < settings.count;
  };
  for (std::uint64_t i = 0; wants_more(i); ++i) {
    (void)run_seed(settings.first + i, settings, totals);
    if (settings.twice) (void)run_seed(settings.first + i, settings, totals);
  }
  if (!settings.hashes)
    std::printf(
        "%llu seeds, %llu failed: %llu calls, %llu events, %.0f simulated seconds in %.1f s (%.0f x real "
        "time)\n",
        static_cast<unsigned long long>(totals.seeds), static_cast<unsigned long long>(totals.failed),
        static_cast<unsigned long long>(totals.calls), static_cast<unsigned long long>(totals.events),
        totals.simulated, seconds(), totals.simulated / seconds());
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace weft::swarm

int main(int argc, char** argv) {
  return weft::swarm::main_of(argc, argv);
}
