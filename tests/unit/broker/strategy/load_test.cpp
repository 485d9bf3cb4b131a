#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <numeric>

#include "broker/strategy/least_requests.h"
#include "broker/strategy/peak_ewma.h"
#include "tests/unit/broker/strategy/backends.h"
#include "tests/unit/broker/strategy/endpoints.h"

namespace weft {
namespace {

// The sanitizers look for faults in memory, and need no statistics for that.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_TEST_SANITIZED
#endif
#endif
#ifdef WEFT_TEST_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using namespace std::chrono_literals;

constexpr Instant at(Duration time) {
  return Instant{} + time;
}

// Calls under way, begun by hand.
class Flights {
 public:
  Flight& begin(Endpoint& endpoint, Duration now = {}) {
    flights_.emplace_back().begin(endpoint, at(now));
    return flights_.back();
  }

 private:
  std::list<Flight> flights_;
};

// A call that was answered after `took`.
void answered(Strategy& strategy, Endpoint& endpoint, Duration took, Duration now,
              Ending ending = Ending::kAnswered) {
  strategy.on_ended(endpoint, ending, at(now - took), at(now));
}

// The algorithm as published: what an endpoint has answered and how many calls it owes, and nothing else.
class PublishedPeakEwma final : public Strategy {
 public:
  explicit PublishedPeakEwma(Random& random) : random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override {
    const std::size_t a = random_.below(endpoints.size());
    std::size_t b = random_.below(endpoints.size() - 1);
    if (b >= a) ++b;
    return cost(*endpoints[a], selection.now) <= cost(*endpoints[b], selection.now) ? endpoints[a]
                                                                                    : endpoints[b];
  }
  void on_ended(Endpoint& endpoint, Ending, Instant begun, Instant now) override {
    const double took = to_ms(now - begun);
    const double weight = remaining(endpoint, now);
    const double decayed = std::max(endpoint.latency_ms, 0.0) * weight;
    endpoint.latency_ms = took > decayed ? took : decayed + took * (1 - weight);
    endpoint.latency_at = now;
  }

 private:
  static double remaining(const Endpoint& endpoint, Instant now) {
    return std::exp(-to_ms(now - endpoint.latency_at) / 10'000);
  }
  static double cost(const Endpoint& endpoint, Instant now) {
    if (endpoint.latency_ms < 0) return endpoint.in_flight() == 0 ? 0 : 1e9 + endpoint.in_flight();
    return endpoint.latency_ms * remaining(endpoint, now) * (endpoint.in_flight() + 1);
  }
  Random& random_;
};

// 10 to 30 ms; the first backend 2 s while `slow` says so.
BackendRun with_slow_first(std::function<bool(Duration now, Random&)> slow) {
  BackendRun run;
  run.service_time = [slow = std::move(slow)](std::size_t backend, Duration now, Random& random) -> Duration {
    if (backend == 0 && slow(now, random)) return 2s;
    return from_ms(10 + 20 * random.uniform());
  };
  return run;
}

double spread(const std::vector<std::size_t>& counts) {
  const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  return static_cast<double>(*std::max_element(counts.begin(), counts.end())) / mean;
}

}  // namespace

TEST_SUITE("load of endpoints") {
  TEST_CASE("an endpoint counts its flights and knows the oldest, in whatever order they end") {
    TestEndpoints endpoints(2);
    std::array<Flight, 4> flights;
    for (int i = 0; i < 4; ++i) flights[i].begin(endpoints[0], at(i * 10ms));
    CHECK(endpoints[0].in_flight() == 4);
    CHECK(endpoints.group.in_flight == 4);
    CHECK(endpoints[0].oldest_age(at(100ms)) == 100ms);
    flights[1].leave();
    CHECK(endpoints[0].oldest_age(at(100ms)) == 100ms);
    flights[0].leave();
    CHECK(endpoints[0].oldest_age(at(100ms)) == 80ms);
    flights[3].leave();
    CHECK(endpoints[0].oldest_age(at(100ms)) == 80ms);
    flights[2].leave();
    flights[2].leave();  // Once is enough.
    CHECK(endpoints[0].oldest_age(at(100ms)) == 0ms);
    CHECK(endpoints[0].in_flight() == 0);
    CHECK(endpoints.group.in_flight == 0);
    flights[2].begin(endpoints[1], at(100ms));  // And again, for a further try.
    CHECK(endpoints[1].in_flight() == 1);
  }

  TEST_CASE("flights may outlive their endpoint, and an endpoint its flights") {
    EndpointGroup group;
    Flight survivor;
    {
      Endpoint endpoint;
      endpoint.group = &group;
      survivor.begin(endpoint, at(1ms));
      {
        Flight gone;
        gone.begin(endpoint, at(2ms));
        CHECK(group.in_flight == 2);
      }
      CHECK(endpoint.in_flight() == 1);
    }
    CHECK(group.in_flight == 0);
    CHECK(survivor.endpoint() == nullptr);
    land(survivor, Ending::kAnswered, at(3ms));  // Nobody is there to be told.
  }

  TEST_CASE("landing tells the endpoint's strategy how it ended") {
    struct Listener final : Strategy {
      std::vector<std::pair<Ending, Duration>> heard;
      const Endpoint* select(std::span<const Endpoint* const> all, const Selection&) override {
        return all.front();
      }
      void on_ended(Endpoint& endpoint, Ending ending, Instant begun, Instant now) override {
        CHECK(endpoint.in_flight() == 0);
        heard.emplace_back(ending, now - begun);
      }
    } listener;
    TestEndpoints endpoints(1);
    Flight flight;
    flight.begin(endpoints[0], at(5ms));
    endpoints.group.strategy = &listener;
    land(flight, Ending::kFailed, at(12ms));
    land(flight, Ending::kFailed, at(13ms));
    REQUIRE(listener.heard.size() == 1);
    CHECK(listener.heard[0] == std::pair<Ending, Duration>(Ending::kFailed, 7ms));
  }
}

TEST_SUITE("least requests") {
  TEST_CASE("of two endpoints the one with fewer calls under way is taken") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    Flights flights;
    const auto strategy = make_strategy("LeastRequests", {}, random);
    flights.begin(endpoints[0]);
    for (int i = 0; i < 50; ++i) CHECK(chosen(*strategy, endpoints.list()) == "n1");
    flights.begin(endpoints[1]);
    flights.begin(endpoints[1]);
    for (int i = 0; i < 50; ++i) CHECK(chosen(*strategy, endpoints.list()) == "n0");
  }

  TEST_CASE(
      "two different ones are drawn: the busiest is never taken, the idlest twice as often as its share") {
    SeededRandom random(1);
    TestEndpoints endpoints(10);
    Flights flights;
    for (int i = 0; i < 10; ++i) {
      for (int n = 0; n < i; ++n) flights.begin(endpoints[i]);
    }
    const auto strategy = make_strategy("LeastRequests", {}, random);
    const auto taken = counts(*strategy, endpoints.list(), 45'000);
    for (int i = 0; i < 9; ++i) {  // Of 45 pairs, 9 - i have i for the lesser.
      CHECK(taken.at("n" + std::to_string(i)) == doctest::Approx(1000.0 * (9 - i)).epsilon(0.1));
    }
    CHECK_FALSE(taken.contains("n9"));
  }

  TEST_CASE("sampleCount 0 looks at all; among equals any is taken") {
    SeededRandom random(1);
    TestEndpoints endpoints(8);
    Flights flights;
    for (int i = 0; i < 6; ++i) flights.begin(endpoints[i]);
    const auto strategy = make_strategy("LeastRequests", {{"sampleCount", 0}}, random);
    const auto taken = counts(*strategy, endpoints.list(), 1000);
    CHECK(taken.size() == 2);
    CHECK(taken.at("n6") > 100);
    CHECK(taken.at("n7") > 100);
  }

  TEST_CASE("idle endpoints share evenly, one alone gets all") {
    SeededRandom random(1);
    TestEndpoints endpoints(5);
    const auto strategy = make_strategy("LeastRequests", {}, random);
    for (const auto& [id, count] : counts(*strategy, endpoints.list(), 10'000))
      CHECK(count == doctest::Approx(2000).epsilon(0.1));
    CHECK(chosen(*strategy, endpoints.list().first(1)) == "n0");
  }

  TEST_CASE("an endpoint at half speed gets less, and nobody's queue grows") {
    SeededRandom random(1);
    const auto strategy = make_strategy("LeastRequests", {}, random);
    BackendRun run;
    run.service_time = [](std::size_t backend, Duration, Random&) { return backend == 0 ? 40ms : 20ms; };
    const auto outcome = run_backends(*strategy, run);
    CHECK(outcome.in_time == outcome.calls);
    CHECK(outcome.of_each[0] < outcome.of_each[1] * 3 / 4);
    CHECK(outcome.of_each[0] > outcome.of_each[1] / 3);
  }
}

TEST_SUITE("peak ewma") {
  TEST_CASE("the quicker of two is taken, and calls under way weigh") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    Flights flights;
    const auto strategy = make_strategy("PeakEwma", {}, random);
    answered(*strategy, endpoints[0], 10ms, 1s);
    answered(*strategy, endpoints[1], 25ms, 1s);
    const auto pick = [&] { return chosen(*strategy, endpoints.list(), {}, {}, at(1s)); };
    CHECK(pick() == "n0");
    flights.begin(endpoints[0], 1s);
    CHECK(pick() == "n0");  // 20 < 25.
    flights.begin(endpoints[0], 1s);
    CHECK(pick() == "n1");  // 30 > 25.
  }

  TEST_CASE("a peak is taken over at once and forgotten with time") {
    SeededRandom random(1);
    TestEndpoints endpoints(1);
    Endpoint& endpoint = endpoints[0];
    const auto strategy = make_strategy("PeakEwma", {}, random);
    answered(*strategy, endpoint, 10ms, 1s);
    answered(*strategy, endpoint, 500ms, 2s);
    CHECK(endpoint.latency_ms == doctest::Approx(500));
    answered(*strategy, endpoint, 10ms, 12s);  // One time constant later.
    CHECK(endpoint.latency_ms == doctest::Approx(500 / M_E + 10 * (1 - 1 / M_E)));
    for (int s = 13; s < 100; ++s) answered(*strategy, endpoint, 10ms, s * 1s);
    CHECK(endpoint.latency_ms == doctest::Approx(10).epsilon(0.02));
  }

  TEST_CASE("decay sets how long a peak is remembered") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    const auto strategy = make_strategy("PeakEwma", {{"decay", 1}}, random);
    answered(*strategy, endpoints[0], 1s, 10s);
    answered(*strategy, endpoints[1], 100ms, 12s);
    CHECK(chosen(*strategy, endpoints.list(), {}, {}, at(12s)) == "n1");  // 135 > 100.
    answered(*strategy, endpoints[1], 100ms, 13s);
    CHECK(chosen(*strategy, endpoints.list(), {}, {}, at(13s)) == "n0");  // 50 < 100.
  }

  TEST_CASE("an unanswered call counts with its age before anything has ended") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    Flights flights;
    const auto strategy = make_strategy("PeakEwma", {}, random);
    answered(*strategy, endpoints[0], 10ms, 1s);
    answered(*strategy, endpoints[1], 35ms, 1s);
    Flight& hanging = flights.begin(endpoints[0], 1s);
    CHECK(chosen(*strategy, endpoints.list(), {}, {}, at(1010ms)) == "n0");
    CHECK(chosen(*strategy, endpoints.list(), {}, {}, at(1020ms)) == "n1");
    endpoints.group.strategy = strategy.get();
    land(hanging, Ending::kAnswered, at(1020ms));
    CHECK(chosen(*strategy, endpoints.list(), {}, {}, at(1020ms)) == "n0");
  }

  TEST_CASE("a failure at once is no quick answer") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    const auto strategy = make_strategy("PeakEwma", {{"failurePenalty", 200}}, random);
    answered(*strategy, endpoints[0], 1ms, 1s, Ending::kFailed);
    CHECK(endpoints[0].latency_ms == doctest::Approx(200));
    answered(*strategy, endpoints[1], 700ms, 1s, Ending::kFailed);
    CHECK(endpoints[1].latency_ms == doctest::Approx(700));
  }

  TEST_CASE("a call that nobody waits for any more says only that it was slow") {
    SeededRandom random(1);
    TestEndpoints endpoints(1);
    const auto strategy = make_strategy("PeakEwma", {}, random);
    answered(*strategy, endpoints[0], 100ms, 1s);
    answered(*strategy, endpoints[0], 10ms, 1s, Ending::kAbandoned);
    CHECK(endpoints[0].latency_ms == doctest::Approx(100));
    answered(*strategy, endpoints[0], 300ms, 1s, Ending::kAbandoned);
    CHECK(endpoints[0].latency_ms == doctest::Approx(300));
  }

  TEST_CASE("one that never answered gets a single call until it does") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    Flights flights;
    const auto strategy = make_strategy("PeakEwma", {}, random);
    answered(*strategy, endpoints[0], 10ms, 1s);
    const auto pick = [&] { return chosen(*strategy, endpoints.list(), {}, {}, at(1s)); };
    CHECK(pick() == "n1");
    flights.begin(endpoints[1], 1s);
    for (int i = 0; i < 100; ++i) flights.begin(endpoints[0], 1s);
    CHECK(pick() == "n0");
  }

  TEST_CASE("at equal speed the load is even") {
    SeededRandom random(1);
    const auto strategy = make_strategy("PeakEwma", {}, random);
    const auto outcome = run_backends(*strategy, with_slow_first([](Duration, Random&) { return false; }));
    CHECK(outcome.in_time == outcome.calls);
    CHECK(spread(outcome.of_each) < 1.2);
  }

  TEST_CASE("eleven backends, one of which answers in 2 s for half the time") {
    const std::function<bool(Duration, Random&)> times[] = {
        [](Duration now, Random&) { return now >= 15s && now < 45s; },
        [](Duration now, Random&) { return now % 10s >= 5s; },
        [](Duration, Random& random) { return random.uniform() < 0.5; },
    };
    std::size_t late = 0;
    std::size_t late_as_published = 0;
    for (const auto& is_slow : times) {
      for (const double rate : {200.0, 1000.0, 3000.0}) {
        if (kSanitized && rate != 1000.0) continue;
        for (const std::uint64_t seed : {1, 2}) {
          if (kSanitized && seed != 1) continue;
          CAPTURE(rate);
          CAPTURE(seed);
          BackendRun run = with_slow_first(is_slow);
          run.calls_per_second = rate;
          run.seed = seed;
          SeededRandom random(seed + 100);
          const auto round_robin = run_backends(*make_strategy("RoundRobin", {}, random), run);
          CHECK(round_robin.in_time_percent() == doctest::Approx(95.45).epsilon(0.005));
          PublishedPeakEwma as_published(random);
          const auto published = run_backends(as_published, run);
          late_as_published += published.calls - published.in_time;
          const auto ours = run_backends(*make_strategy("PeakEwma", {}, random), run);
          CHECK(ours.in_time_percent() >= 99.95);
          late += ours.calls - ours.in_time;
        }
      }
    }
    MESSAGE(late, " calls took longer than 1 s, ", late_as_published, " by the algorithm as published.");
    if (!kSanitized) CHECK(late < late_as_published);
  }
}

}  // namespace weft
