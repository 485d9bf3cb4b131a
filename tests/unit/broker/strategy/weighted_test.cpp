#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

#include "broker/strategy/weights.h"
#include "tests/unit/broker/strategy/endpoints.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

void set_weights(TestEndpoints& endpoints, const std::vector<Value>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) endpoints.node(i).metadata = {{"weight", weights[i]}};
}

std::map<std::string, int> counts_at(Strategy& strategy, std::span<const Endpoint* const> endpoints,
                                     int count, Duration now) {
  std::map<std::string, int> taken;
  for (int i = 0; i < count; ++i) ++taken[chosen(strategy, endpoints, {}, {}, Instant{} + now)];
  return taken;
}

constexpr const char* kWeighted[] = {"WeightedRoundRobin", "WeightedRandom"};

}  // namespace

TEST_SUITE("weights") {
  TEST_CASE("a weight is a number of the metadata; what is none is 1, and 0 is none to get") {
    Node node;
    const auto weight = [&](Value given) {
      node.metadata = {{"lb", {{"weight", std::move(given)}}}};
      return weight_of(node, "lb.weight");
    };
    CHECK(weight(3) == 3);
    CHECK(weight(0.25) == 0.25);
    CHECK(weight(0) == 0);
    CHECK(weight(1e300) == kWeightMax);
    CHECK(weight(1e-300) == kWeightMin);
    for (const Value& nonsense : {Value(-1), Value("3"), Value(), Value(true), Value(arr(1)),
                                  Value(std::numeric_limits<double>::quiet_NaN())}) {
      CHECK(weight(nonsense) == 1);
    }
    CHECK(weight(std::numeric_limits<double>::infinity()) == kWeightMax);
    CHECK(weight_of(node, "weight") == 1);
    node.metadata = Value();
    CHECK(weight_of(node, "weight") == 1);
  }

  TEST_CASE("a node warms up from a tenth to all of its weight") {
    const Instant since = Instant{} + 100s;
    CHECK(warmth(since, since, 10s) == doctest::Approx(0.1));
    CHECK(warmth(since, since + 500ms, 10s) == doctest::Approx(0.1));
    CHECK(warmth(since, since + 5s, 10s) == doctest::Approx(0.5));
    CHECK(warmth(since, since + 10s, 10s) == 1);
    CHECK(warmth(since, since, 0s) == 1);
    CHECK(warmth(since, since - 1s, 10s) == doctest::Approx(0.1));
  }

  TEST_CASE("each gets calls by its weight") {
    for (const char* name : kWeighted) {
      CAPTURE(name);
      SeededRandom random(1);
      TestEndpoints endpoints(4);
      set_weights(endpoints, {1, 2.5, 6, Value()});
      const auto strategy = make_strategy(name, {}, random);
      const auto taken = counts(*strategy, endpoints.list(), 105'000);
      CHECK(taken.at("n0") == doctest::Approx(10'000).epsilon(0.05));
      CHECK(taken.at("n1") == doctest::Approx(25'000).epsilon(0.05));
      CHECK(taken.at("n2") == doctest::Approx(60'000).epsilon(0.05));
      CHECK(taken.at("n3") == doctest::Approx(10'000).epsilon(0.05));
    }
  }

  TEST_CASE("weightKey says where in the metadata the weight is") {
    for (const char* name : kWeighted) {
      SeededRandom random(1);
      TestEndpoints endpoints(2);
      endpoints.node(1).metadata = {{"weight", 50}, {"size", {{"cores", 3}}}};
      const auto strategy = make_strategy(name, {{"weightKey", "size.cores"}}, random);
      CHECK(counts(*strategy, endpoints.list(), 8000).at("n1") == doctest::Approx(6000).epsilon(0.05));
    }
  }

  TEST_CASE("weight 0 gets nothing, unless it is so with all") {
    for (const char* name : kWeighted) {
      CAPTURE(name);
      SeededRandom random(1);
      TestEndpoints endpoints(7);
      set_weights(endpoints, {0, 0.1, 0.7, 0, 0.3, 0.1, 0});
      const auto strategy = make_strategy(name, {}, random);
      const auto taken = counts(*strategy, endpoints.list(), 20'000);
      CHECK(taken.size() == 4);
      for (const char* drained : {"n0", "n3", "n6"}) CHECK_FALSE(taken.contains(drained));
      set_weights(endpoints, {0, 0, 0, 0, 0, 0, 0});
      strategy->on_endpoints_changed();
      CHECK(counts(*strategy, endpoints.list(), 1000).size() == 7);
    }
  }

  TEST_CASE("a new weight counts from the notice on") {
    for (const char* name : kWeighted) {
      CAPTURE(name);
      SeededRandom random(1);
      TestEndpoints endpoints(2);
      set_weights(endpoints, {0.001, 1});  // The first is due a thousand rounds from now …
      const auto strategy = make_strategy(name, {}, random);
      CHECK(counts(*strategy, endpoints.list(), 100)["n0"] <= 1);
      set_weights(endpoints, {1, 1});  // … and no more.
      strategy->on_endpoints_changed();
      CHECK(counts(*strategy, endpoints.list(), 1000).at("n0") == doctest::Approx(500).epsilon(0.15));
    }
  }

  TEST_CASE("a newcomer starts slowly among those who were there, and has its share in the end") {
    for (const char* name : kWeighted) {
      CAPTURE(name);
      SeededRandom random(1);
      TestEndpoints endpoints(3);
      set_weights(endpoints, {1, 1, 2});
      const auto strategy = make_strategy(name, {{"slowStart", 10}}, random);
      endpoints.node(2).since = Instant{} + 100s;
      const auto share = [&](Duration now) {
        return counts_at(*strategy, endpoints.list(), 40'000, now)["n2"] / 40'000.0;
      };
      CHECK(share(100s) == doctest::Approx(0.2 / 2.2).epsilon(0.1));
      CHECK(share(105s) == doctest::Approx(1.0 / 3.0).epsilon(0.1));
      CHECK(share(110s) == doctest::Approx(0.5).epsilon(0.05));
      CHECK(share(1000s) == doctest::Approx(0.5).epsilon(0.05));
    }
  }

  TEST_CASE("where all are new, slow start holds nobody back") {
    for (const char* name : kWeighted) {
      CAPTURE(name);
      SeededRandom random(1);
      TestEndpoints endpoints(4);
      set_weights(endpoints, {1, 1, 1, 3});
      const auto strategy = make_strategy(name, {{"slowStart", 10}}, random);
      CHECK(counts_at(*strategy, endpoints.list(), 6000, 1s).at("n3") == doctest::Approx(3000).epsilon(0.1));
    }
  }

  TEST_CASE("whatever list it is handed, the choice is one of it") {
    for (const char* name : kWeighted) {
      CAPTURE(name);
      SeededRandom random(5);
      TestEndpoints endpoints(30);
      for (std::size_t i = 0; i < 30; ++i) set_weights(endpoints, {static_cast<int>(i % 4)});
      const auto strategy = make_strategy(name, {{"slowStart", 1}}, random);
      for (int round = 0; round < 2000; ++round) {
        std::vector<const Endpoint*> part;
        for (const Endpoint* endpoint : endpoints.list()) {
          if (random.below(30) < static_cast<std::size_t>(round % 31)) part.push_back(endpoint);
        }
        if (part.empty()) continue;
        if (round % 3 == 0) strategy->on_endpoints_changed();
        const Endpoint* choice = strategy->select(part, {{}, {}, Instant{} + round * 1ms});
        REQUIRE(std::find(part.begin(), part.end(), choice) != part.end());
      }
    }
  }
}

TEST_SUITE("weighted round robin") {
  TEST_CASE("any stretch holds each endpoint's share to within one call") {
    SeededRandom random(1);
    TestEndpoints endpoints(3);
    set_weights(endpoints, {5, 1, 1});
    const auto strategy = make_strategy("WeightedRoundRobin", {}, random);
    std::vector<std::string> order;
    for (int i = 0; i < 700; ++i) order.push_back(chosen(*strategy, endpoints.list()));
    for (const int rounds : {1, 3, 10}) {
      for (auto at = order.begin(); at + 7 * rounds <= order.end(); ++at) {
        CHECK(std::abs(std::count(at, at + 7 * rounds, "n0") - 5 * rounds) <= 1);
        CHECK(std::abs(std::count(at, at + 7 * rounds, "n1") - rounds) <= 1);
      }
    }
    int run = 0;
    int longest = 0;
    for (const std::string& id : order) longest = std::max(longest, run = id == "n0" ? run + 1 : 0);
    CHECK(longest <= 4);  // Not five in a row.
  }

  TEST_CASE("with equal weights it is a rotation, which callers enter at different places") {
    TestEndpoints endpoints(10);
    std::map<std::string, int> first;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SeededRandom random(seed);
      const auto strategy = make_strategy("WeightedRoundRobin", {}, random);
      std::vector<std::string> order;
      for (int i = 0; i < 30; ++i) order.push_back(chosen(*strategy, endpoints.list()));
      CHECK(std::equal(order.begin(), order.begin() + 20, order.begin() + 10));
      CHECK(std::set<std::string>(order.begin(), order.begin() + 10).size() == 10);
      ++first[order.front()];
    }
    CHECK(first.size() >= 8);
  }

  TEST_CASE("notices do not disturb the rotation") {
    SeededRandom random(1);
    TestEndpoints endpoints(5);
    set_weights(endpoints, {1, 2, 3, 4, 5});
    const auto strategy = make_strategy("WeightedRoundRobin", {}, random);
    std::map<std::string, int> taken;
    for (int i = 0; i < 1500; ++i) {
      strategy->on_endpoints_changed();
      ++taken[chosen(*strategy, endpoints.list())];
    }
    for (int i = 0; i < 5; ++i) CHECK(std::abs(taken["n" + std::to_string(i)] - 100 * (i + 1)) <= 1);
  }

  TEST_CASE("a rotation of millions of rounds keeps its proportions") {
    SeededRandom random(1);
    TestEndpoints endpoints(2);
    set_weights(endpoints, {0.001, 0.003});  // A thousand units of time a round: it starts anew now and then.
    const auto strategy = make_strategy("WeightedRoundRobin", {}, random);
    const auto taken = counts(*strategy, endpoints.list(), 100'000);
    CHECK(std::abs(taken.at("n0") - 25'000) <= 1);
  }
}

}  // namespace weft
