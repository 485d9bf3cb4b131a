#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "broker/guards/bulkhead.h"
#include "broker/guards/latency_quantile.h"
#include "broker/guards/policies.h"
#include "broker/guards/retry_budget.h"

namespace weft {

using namespace std::chrono_literals;

namespace {

constexpr Instant kStart{1h};

// Calls that all fail and would be tried again `wanted` times each, at an even rate; the number of tries
// granted.
int tries(const BudgetPolicy& policy, int calls_per_second, int seconds, int wanted) {
  RetryBudget budget(policy, kStart);
  int granted = 0;
  for (int i = 0; i < calls_per_second * seconds; ++i) {
    const Instant now = kStart + i * (Duration(1s) / calls_per_second);
    budget.on_call();
    for (int k = 0; k < wanted; ++k) granted += budget.take(now) ? 1 : 0;
  }
  return granted;
}

using Entries = Bulkhead<int>;

// The long way: everything that is there, in order.
struct Model {
  struct Entry {
    int item;
    Instant deadline;
  };
  int running = 0;
  std::vector<Entry> waiting;
};

struct Explorer {
  std::size_t concurrency;
  std::size_t queue_max;
  std::size_t steps = 0;
  std::size_t expired = 0;

  void explore(const Entries& entries, const Model& model, Instant now, int depth) {
    ++steps;
    REQUIRE(entries.running() == static_cast<std::size_t>(model.running));
    REQUIRE(entries.waiting() == model.waiting.size());
    REQUIRE(entries.running() <= concurrency);
    REQUIRE(entries.waiting() <= queue_max);
    if (entries.waiting() > 0) REQUIRE(entries.running() == concurrency);  // Nobody waits for nothing.
    if (depth == 0) return;
    for (const Instant deadline : {now + 1s, kNever}) {
      Entries next = entries;
      Model expected = model;
      int item = depth;
      const auto admission = next.enter(item, deadline);
      if (expected.running < static_cast<int>(concurrency)) {
        REQUIRE(admission == Entries::Admission::kRun);
        ++expected.running;
      } else if (expected.waiting.size() < queue_max) {
        REQUIRE(admission == Entries::Admission::kQueued);
        expected.waiting.push_back({depth, deadline});
      } else {
        REQUIRE(admission == Entries::Admission::kFull);
        REQUIRE(entries.is_full());
      }
      explore(next, expected, now, depth - 1);
    }
    if (model.running > 0) {
      Entries next = entries;
      Model expected = model;
      const auto turn = next.leave(now);
      if (expected.waiting.empty()) {
        REQUIRE_FALSE(turn.has_value());
        --expected.running;
      } else {
        const Model::Entry first = expected.waiting.front();
        expected.waiting.erase(expected.waiting.begin());
        REQUIRE(turn.has_value());
        REQUIRE(turn->item == first.item);
        REQUIRE(turn->expired == (first.deadline <= now));
        expired += turn->expired ? 1 : 0;
      }
      explore(next, expected, now, depth - 1);
    }
    {
      Entries next = entries;
      Model expected = model;
      while (const auto dropped = next.take_expired(now)) {
        const auto first = std::find_if(expected.waiting.begin(), expected.waiting.end(),
                                        [now](const Model::Entry& e) { return e.deadline <= now; });
        REQUIRE(first != expected.waiting.end());
        REQUIRE(first->item == *dropped);
        expected.waiting.erase(first);
      }
      for (const Model::Entry& left : expected.waiting) REQUIRE(left.deadline > now);
      explore(next, expected, now, depth - 1);
    }
    explore(entries, model, now + 1s, depth - 1);
  }
};

}  // namespace

TEST_SUITE("retry budget") {
  TEST_CASE("further tries stay in proportion to traffic when everything fails") {
    for (const int rate : {100, 1000, 10'000}) {
      CAPTURE(rate);
      const int granted = tries({}, rate, 20, 5);
      CHECK(granted >= rate * 20 * 19 / 100);
      CHECK(granted <= rate * 20 / 5 + 10);
    }
    CHECK(tries({.ratio = 0.05}, 1000, 20, 5) <= 1000 + 10);
  }

  TEST_CASE("low rates have the floor, and no more than that") {
    CHECK(tries({}, 1, 100, 5) == 500);  // 10 a second would be allowed.
    const int granted = tries({}, 2, 100, 50);
    CHECK(granted >= 990);
    CHECK(granted <= 1010);
    CHECK(tries({.min_per_second = 0}, 2, 100, 5) == 40);
  }

  TEST_CASE("quiet times save up no more than the burst") {
    RetryBudget budget({.ratio = 0.2, .min_per_second = 0, .burst = 7}, kStart);
    for (int i = 0; i < 1000; ++i) budget.on_call();
    int granted = 0;
    while (budget.take(kStart + 1h)) ++granted;
    CHECK(granted == 7);
  }

  TEST_CASE("switched off, every try is granted") {
    CHECK(tries({.enabled = false}, 1, 10, 100) == 1000);
  }

  TEST_CASE("no order of calls, tries and time gets more than was filled in") {
    const BudgetPolicy policy{.ratio = 0.5, .min_per_second = 2, .burst = 2};
    std::size_t sequences = 0;
    for (int code = 0; code < 59'049; ++code) {  // 3^10
      RetryBudget budget(policy, kStart);
      Instant now = kStart;
      int calls = 0;
      int granted = 0;
      for (int i = 0, rest = code; i < 10; ++i, rest /= 3) {
        if (rest % 3 == 0) {
          budget.on_call();
          ++calls;
        } else if (rest % 3 == 1) {
          granted += budget.take(now) ? 1 : 0;
        } else {
          now += 250ms;
        }
        const double by_time = 2 * to_ms(now - kStart) / 1000;
        REQUIRE(granted <= 2 + std::max(by_time, 0.0) + 0.5 * calls);
        if (i < 2 && granted == 0 && rest % 3 == 1) FAIL("the reserve is there from the start");
      }
      ++sequences;
    }
    CHECK(sequences == 59'049);
  }
}

TEST_SUITE("bulkhead") {
  TEST_CASE("so many run, so many wait in order, the rest is refused") {
    Entries entries({.enabled = true, .concurrency = 2, .queue_max = 2});
    std::string admissions;
    for (int item = 1; item <= 6; ++item) {
      const auto admission = entries.enter(item, kNever);
      admissions += admission == Entries::Admission::kRun      ? "r"
                    : admission == Entries::Admission::kQueued ? "q"
                                                               : "f";
    }
    CHECK(admissions == "rrqqff");
    CHECK(entries.leave(kStart)->item == 3);
    CHECK(entries.leave(kStart)->item == 4);
    CHECK_FALSE(entries.leave(kStart).has_value());
    CHECK_FALSE(entries.leave(kStart).has_value());
    CHECK(entries.running() == 0);
  }

  TEST_CASE("those who waited beyond their deadline are dropped") {
    Entries entries({.enabled = true, .concurrency = 1, .queue_max = 3});
    int item = 1;
    (void)entries.enter(item, kNever);
    for (const Instant deadline : {kStart + 1s, kNever, kStart + 2s}) {
      ++item;
      (void)entries.enter(item, deadline);
    }
    CHECK(entries.is_full());
    CHECK_FALSE(entries.take_expired(kStart).has_value());
    CHECK(entries.take_expired(kStart + 2s) == 2);
    CHECK(entries.take_expired(kStart + 2s) == 4);
    CHECK_FALSE(entries.take_expired(kStart + 2s).has_value());
    CHECK_FALSE(entries.is_full());
    CHECK(entries.leave(kStart + 2s)->item == 3);
  }

  TEST_CASE("whatever comes in whatever order, it does what a plain list does") {
    for (const std::size_t concurrency : {1, 2}) {
      for (const std::size_t queue_max : {0, 1, 2}) {
        Explorer explorer{concurrency, queue_max};
        explorer.explore(Entries({.enabled = true, .concurrency = concurrency, .queue_max = queue_max}),
                         Model(), kStart, 7);
        CHECK(explorer.steps > 1'000);
        if (queue_max > 0) CHECK(explorer.expired > 10);
      }
    }
  }
}

TEST_SUITE("latency quantile") {
  TEST_CASE("it says nothing before it has seen enough, then what a share of the calls stays below") {
    LatencyQuantile latency;
    for (int i = 1; i < 20; ++i) latency.add(10ms);
    CHECK_FALSE(latency.at(0.5).has_value());
    for (int i = 0; i < 71; ++i) latency.add(10ms);
    for (int i = 0; i < 10; ++i) latency.add(1s);
    for (const double share : {0.1, 0.5, 0.9}) {
      CHECK(*latency.at(share) >= 10ms);
      CHECK(*latency.at(share) <= 12500us);
    }
    CHECK(*latency.at(0.95) >= 1s);
    CHECK(*latency.at(0.95) <= 1250ms);
  }

  TEST_CASE("it is exact to a fifth, at any size, and takes what is too small or too large") {
    for (Duration took = 4us; took < 30min; took = took * 13 / 10) {
      LatencyQuantile latency;
      for (int i = 0; i < 20; ++i) latency.add(took);
      CHECK(*latency.at(1) >= took);
      CHECK(to_ms(*latency.at(1)) <= to_ms(took) * 1.25 + 0.001);
    }
    LatencyQuantile odd;
    for (const Duration took : {Duration(-5), Duration(0), Duration(1), Duration::max()}) {
      for (int i = 0; i < 10; ++i) odd.add(took);
    }
    CHECK(*odd.at(0.5) <= 2us);
    CHECK(*odd.at(1) > 1h);
  }

  TEST_CASE("it forgets: what has been the rule lately counts") {
    LatencyQuantile latency;
    for (int i = 0; i < 5000; ++i) latency.add(1s);
    for (int i = 0; i < 3000; ++i) latency.add(1ms);
    CHECK(*latency.at(0.9) < 2ms);
  }
}

TEST_SUITE("guard policies") {
  TEST_CASE("an action's definition goes before the broker's policy, field by field") {
    const CircuitBreakerPolicy base{.threshold = 0.4, .min_request_count = 7};
    const CircuitBreakerPolicy policy =
        overlaid(base, Value{{"enabled", true}, {"windowTime", 5}, {"halfOpenTime", 250}});
    CHECK(policy.enabled);
    CHECK(policy.threshold == 0.4);
    CHECK(policy.window == 5s);
    CHECK(policy.min_request_count == 7);
    CHECK(policy.half_open_time == 250ms);
    const OutlierPolicy outlier = overlaid(
        OutlierPolicy{}, Value{{"enabled", true}, {"maxEjectionPercent", 30}, {"ejectionTime", 1000}});
    CHECK(outlier.enabled);
    CHECK(outlier.max_ejection_percent == 30);
    CHECK(outlier.ejection_time == 1s);
    CHECK(outlier.consecutive_failures == 5);
  }

  TEST_CASE("what it says comes back out of a definition") {
    const CircuitBreakerPolicy breaker{true, 0.25, 7s, 3, 99ms};
    const CircuitBreakerPolicy read = overlaid(CircuitBreakerPolicy{}, to_definition(breaker));
    CHECK(to_definition(read) == to_definition(breaker));
    const OutlierPolicy outlier{true, 2, 0.75, 3s, 4, 1s, 9s, 20};
    CHECK(to_definition(overlaid(OutlierPolicy{}, to_definition(outlier))) == to_definition(outlier));
  }

  TEST_CASE("nonsense from a peer is passed over") {
    const Value nonsense[] = {Value(), Value(5), Value("x"), arr(1, 2),
                              Value{{"enabled", "yes"},
                                    {"threshold", -1},
                                    {"windowTime", 0},
                                    {"minRequestCount", -5},
                                    {"halfOpenTime", "soon"},
                                    {"consecutiveFailures", -1},
                                    {"failureRate", 7},
                                    {"ejectionTime", -3},
                                    {"ejectionTimeMax", Value()},
                                    {"maxEjectionPercent", 101}}};
    for (const Value& definition : nonsense) {
      CHECK(to_definition(overlaid(CircuitBreakerPolicy{}, definition)) ==
            to_definition(CircuitBreakerPolicy{}));
      CHECK(to_definition(overlaid(OutlierPolicy{}, definition)) == to_definition(OutlierPolicy{}));
    }
  }
}

}  // namespace weft
