#include "broker/guards/circuit_breaker.h"

#include <doctest/doctest.h>

#include <vector>

namespace weft {

using namespace std::chrono_literals;
using State = CircuitBreaker::State;
using Ticket = CircuitBreaker::Ticket;

namespace {

constexpr Instant kStart{1h};
constexpr CallOutcome kOutcomes[] = {CallOutcome::kSuccess, CallOutcome::kFailure, CallOutcome::kAnswered,
                                     CallOutcome::kUnknown};

CircuitBreakerPolicy policy() {
  return {.enabled = true, .threshold = 0.5, .window = 60s, .min_request_count = 4, .half_open_time = 10s};
}

// `outcome` so many times, each of a call that ends at once.
void run(CircuitBreaker& breaker, CallOutcome outcome, int times, Instant now = kStart) {
  for (int i = 0; i < times; ++i) breaker.record(breaker.admit(now), outcome, now);
}

CircuitBreaker opened() {
  CircuitBreaker breaker(policy());
  run(breaker, CallOutcome::kFailure, 4);
  return breaker;
}

CircuitBreaker half_open() {
  CircuitBreaker breaker = opened();
  breaker.tick(kStart + 10s);
  return breaker;
}

// What the machine is to do, written down the long way: whole histories, nothing counted ahead.
struct Model {
  static constexpr Duration kHalfOpen = 4s;
  static constexpr Duration kWindow = 10s;
  struct Call {
    bool is_probe;
    int era;  // How often the state had changed when it was admitted; -1: past a breaker that was open.
    Ticket ticket;
  };
  struct Counted {
    Instant at;
    bool failed;
  };

  State state = State::kClosed;
  int era = 0;
  Instant since = kStart;
  std::vector<Counted> history;
  std::vector<Call> calls;

  void become(State next, Instant now) {
    state = next;
    since = now;
    ++era;
  }
  void tick(Instant now) {
    const bool waits = state == State::kOpen || state == State::kProbing;
    if (waits && now - since >= kHalfOpen) become(State::kHalfOpen, now);
  }
  void admit(Ticket ticket, Instant now) {
    const bool is_probe = state == State::kHalfOpen;
    if (is_probe) become(State::kProbing, now);
    calls.push_back({is_probe, is_probe || state == State::kClosed ? era : -1, ticket});
  }
  void end(std::size_t which, CallOutcome outcome, Instant now) {
    const Call call = calls[which];
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(which));
    if (call.era != era) return;
    if (call.is_probe) {
      if (outcome == CallOutcome::kUnknown) return become(State::kHalfOpen, now);
      if (outcome != CallOutcome::kFailure) {
        history.clear();
        return become(State::kClosed, now);
      }
      history.push_back({now, true});
      return become(State::kOpen, now);
    }
    if (outcome == CallOutcome::kAnswered || outcome == CallOutcome::kUnknown) return;
    history.push_back({now, outcome == CallOutcome::kFailure});
    const auto [counted, failed] = in_window(now);
    if (counted >= 2 && failed * 2 >= counted) become(State::kOpen, now);
  }
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> in_window(Instant now) const {
    std::pair<std::uint32_t, std::uint32_t> sums{0, 0};
    for (const Counted& one : history) {
      if (now - one.at >= kWindow) continue;
      ++sums.first;
      sums.second += one.failed ? 1 : 0;
    }
    return sums;
  }
};

// Tries every sequence of inputs of a length: a call, the end of the oldest or newest call in each of the
// four ways, and time.
struct Explorer {
  std::size_t steps = 0;
  std::size_t probes = 0;

  void explore(const CircuitBreaker& breaker, const Model& model, Instant now, int depth) {
    if (depth == 0) return;
    {
      CircuitBreaker next = breaker;
      Model expected = model;
      const bool may = next.admits();
      const bool is_half_open = next.state() == State::kHalfOpen;
      const Ticket ticket = next.admit(now);
      expected.admit(ticket, now);
      CHECK((ticket != 0) == may);
      if (is_half_open) {
        ++probes;
        REQUIRE_FALSE(next.admits());  // One call, and nobody else.
      }
      go_on(next, expected, now, depth);
    }
    for (const CallOutcome outcome : kOutcomes) {
      for (const bool oldest : {true, false}) {
        if (model.calls.empty() || (!oldest && model.calls.size() == 1)) continue;
        CircuitBreaker next = breaker;
        Model expected = model;
        const std::size_t which = oldest ? 0 : model.calls.size() - 1;
        next.record(model.calls[which].ticket, outcome, now);
        expected.end(which, outcome, now);
        go_on(next, expected, now, depth);
      }
    }
    CircuitBreaker next = breaker;
    Model expected = model;
    const Instant later = now + 4s;
    next.tick(later);
    expected.tick(later);
    go_on(next, expected, later, depth);
  }

  void go_on(const CircuitBreaker& breaker, const Model& expected, Instant now, int depth) {
    ++steps;
    REQUIRE(breaker.state() == expected.state);
    const bool waits = breaker.state() == State::kOpen || breaker.state() == State::kProbing;
    REQUIRE((breaker.next_tick() != kNever) == waits);  // Nobody stays out for ever.
    explore(breaker, expected, now, depth - 1);
  }
};

}  // namespace

TEST_SUITE("circuit breaker") {
  TEST_CASE("it opens at the threshold, and not before the minimum of calls") {
    struct Row {
      const char* what;
      int successes;
      int failures;
      State state;
    };
    const Row rows[] = {
        {"all fail, too few", 0, 3, State::kClosed}, {"all fail, enough", 0, 4, State::kOpen},
        {"half fail", 2, 2, State::kOpen},           {"a third fails", 4, 2, State::kClosed},
        {"none fails", 10, 0, State::kClosed},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      CircuitBreaker breaker(policy());
      run(breaker, CallOutcome::kSuccess, row.successes);
      run(breaker, CallOutcome::kFailure, row.failures);
      CHECK(breaker.state() == row.state);
      CHECK(breaker.admits() == (row.state == State::kClosed));
      CHECK(breaker.calls() == static_cast<std::uint32_t>(row.successes + row.failures));
      CHECK(breaker.failures() == static_cast<std::uint32_t>(row.failures));
    }
  }

  TEST_CASE("a success may open it as well: when it makes up the minimum") {
    CircuitBreaker breaker(policy());
    run(breaker, CallOutcome::kFailure, 3);
    run(breaker, CallOutcome::kSuccess, 1);
    CHECK(breaker.state() == State::kOpen);
  }

  TEST_CASE("answers that refuse the caller and calls that did not get there count for nothing") {
    CircuitBreaker breaker(policy());
    run(breaker, CallOutcome::kFailure, 3);
    run(breaker, CallOutcome::kAnswered, 50);
    run(breaker, CallOutcome::kUnknown, 50);
    CHECK(breaker.calls() == 3);
    CHECK(breaker.state() == State::kClosed);
  }

  TEST_CASE("failures fall out of the window slice by slice, not all at once") {
    CircuitBreaker breaker(policy());
    run(breaker, CallOutcome::kFailure, 2, kStart);
    run(breaker, CallOutcome::kFailure, 1, kStart + 50s);
    run(breaker, CallOutcome::kSuccess, 1, kStart + 70s);  // The first two are too old, the third is not.
    CHECK(breaker.state() == State::kClosed);
    CHECK(breaker.calls() == 2);
    CHECK(breaker.failures() == 1);
    run(breaker, CallOutcome::kSuccess, 1, kStart + 10h);
    CHECK(breaker.calls() == 1);
    CHECK(breaker.failures() == 0);
  }

  TEST_CASE("it half-opens after its time, and a success of the probe closes it with a clean slate") {
    CircuitBreaker breaker = opened();
    CHECK(breaker.next_tick() == kStart + 10s);
    breaker.tick(kStart + 9s);
    CHECK(breaker.state() == State::kOpen);
    breaker.tick(kStart + 10s);
    CHECK(breaker.state() == State::kHalfOpen);
    CHECK(breaker.admits());
    run(breaker, CallOutcome::kSuccess, 1, kStart + 11s);
    CHECK(breaker.state() == State::kClosed);
    run(breaker, CallOutcome::kFailure, 3, kStart + 11s);
    CHECK(breaker.state() == State::kClosed);
  }

  TEST_CASE("a failing probe opens it for another period") {
    CircuitBreaker breaker = half_open();
    run(breaker, CallOutcome::kFailure, 1, kStart + 15s);
    CHECK(breaker.state() == State::kOpen);
    CHECK(breaker.next_tick() == kStart + 25s);
  }

  TEST_CASE("a probe that is refused as the caller's mistake closes it: the endpoint answers") {
    CircuitBreaker breaker = half_open();
    run(breaker, CallOutcome::kAnswered, 1, kStart + 10s);
    CHECK(breaker.state() == State::kClosed);
  }

  TEST_CASE("a probe that did not get there leaves it half open for the next one") {
    CircuitBreaker breaker = half_open();
    run(breaker, CallOutcome::kUnknown, 1, kStart + 10s);
    CHECK(breaker.state() == State::kHalfOpen);
  }

  TEST_CASE("a probe that never ends is given up, and its late end is passed over") {
    CircuitBreaker breaker = half_open();
    const Ticket stuck = breaker.admit(kStart + 10s);
    CHECK_FALSE(breaker.admits());
    CHECK(breaker.next_tick() == kStart + 20s);
    breaker.tick(kStart + 20s);
    CHECK(breaker.state() == State::kHalfOpen);
    breaker.record(stuck, CallOutcome::kFailure, kStart + 21s);
    CHECK(breaker.state() == State::kHalfOpen);
    const Ticket probe = breaker.admit(kStart + 21s);
    breaker.record(stuck, CallOutcome::kSuccess, kStart + 22s);
    CHECK(breaker.state() == State::kProbing);
    breaker.record(probe, CallOutcome::kSuccess, kStart + 23s);
    CHECK(breaker.state() == State::kClosed);
  }

  TEST_CASE("half open admits exactly one of many; calls from before do not decide for the probe") {
    CircuitBreaker breaker(policy());
    std::vector<Ticket> early;
    for (int i = 0; i < 10; ++i) early.push_back(breaker.admit(kStart));
    for (int i = 0; i < 4; ++i)
      breaker.record(early[static_cast<std::size_t>(i)], CallOutcome::kFailure, kStart);
    breaker.tick(kStart + 10s);
    int admitted = 0;
    for (int i = 0; i < 10; ++i) {
      if (!breaker.admits()) continue;
      ++admitted;
      (void)breaker.admit(kStart + 10s);
    }
    CHECK(admitted == 1);
    for (std::size_t i = 4; i < 10; ++i) {
      breaker.record(early[i], i % 2 == 0 ? CallOutcome::kSuccess : CallOutcome::kFailure, kStart + 11s);
      CHECK(breaker.state() == State::kProbing);
    }
  }

  TEST_CASE("whatever comes in whatever order, it does what its long-hand description does") {
    const CircuitBreakerPolicy small{.enabled = true,
                                     .threshold = 0.5,
                                     .window = Model::kWindow,
                                     .min_request_count = 2,
                                     .half_open_time = Model::kHalfOpen};
    Explorer explorer;
    explorer.explore(CircuitBreaker(small), Model(), kStart, 8);
    CHECK(explorer.steps > 100'000);
    CHECK(explorer.probes > 1'000);
  }
}

}  // namespace weft
