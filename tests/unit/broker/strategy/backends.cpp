#include "tests/unit/broker/strategy/backends.h"

#include <cmath>
#include <queue>

namespace weft {

BackendOutcome run_backends(Strategy& strategy, const BackendRun& run) {
  SeededRandom random(run.seed);
  TestEndpoints endpoints(run.backends);
  endpoints.group.strategy = &strategy;
  BackendOutcome outcome;
  outcome.of_each.resize(run.backends);

  struct End {
    Instant at;
    std::size_t call;
    Ending ending;
    bool operator>(const End& other) const { return at > other.at; }
  };
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::deque<Flight> flights;  // A place for each call: none moves.
  const Payload none;
  Instant now{};
  const Instant stop = now + run.length;
  while (true) {
    now += from_ms(-std::log(1 - random.uniform()) * 1000 / run.calls_per_second);
    if (now >= stop) break;
    while (!ends.empty() && ends.top().at <= now) {
      land(flights[ends.top().call], ends.top().ending, ends.top().at);
      ends.pop();
    }
    const Endpoint* chosen = strategy.select(endpoints.list(), {none, none, now});
    std::size_t backend = 0;
    while (endpoints.list()[backend] != chosen) ++backend;
    const Duration takes = run.service_time(backend, now - Instant{}, random);
    const bool in_time = takes <= run.timeout;
    flights.emplace_back().begin(endpoints[backend], now);
    ends.push(
        {now + std::min(takes, run.timeout), outcome.calls, in_time ? Ending::kAnswered : Ending::kFailed});
    ++outcome.calls;
    ++outcome.of_each[backend];
    outcome.in_time += in_time ? 1 : 0;
  }
  return outcome;
}

}  // namespace weft
