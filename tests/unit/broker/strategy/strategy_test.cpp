#include "broker/strategy/strategy.h"

#include <doctest/doctest.h>

#include "broker/strategy/latency.h"
#include "tests/unit/broker/strategy/endpoints.h"

using namespace weft;

namespace {

// Pearson's chi squared against an even split over `nodes`.
double chi_squared(const std::map<std::string, int>& taken, std::size_t nodes, int total) {
  const double expected = static_cast<double>(total) / static_cast<double>(nodes);
  double sum = expected * static_cast<double>(nodes - taken.size());
  for (const auto& [id, count] : taken) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

std::string refusal(std::string_view name, const Value& options) {
  SeededRandom random(1);
  const auto made = StrategyTable().make(name, options, random);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().error_class() == ErrorClass::kBrokerOptions);
  return made.error().message();
}

}  // namespace

TEST_SUITE("strategies") {
  TEST_CASE("round robin takes each endpoint in turn, in order of registration") {
    SeededRandom random(1);
    TestEndpoints endpoints({"c", "a", "b"});
    const auto strategy = make_strategy("RoundRobin", {}, random);
    std::string order;
    for (int i = 0; i < 7; ++i) order += chosen(*strategy, endpoints.list());
    CHECK(order == "cabcabc");
  }

  TEST_CASE("round robin begins anew when its place is gone") {
    SeededRandom random(1);
    TestEndpoints endpoints({"a", "b", "c"});
    const auto strategy = make_strategy("RoundRobin", {}, random);
    (void)chosen(*strategy, endpoints.list());
    (void)chosen(*strategy, endpoints.list());
    CHECK(chosen(*strategy, endpoints.list().first(1)) == "a");
    CHECK(chosen(*strategy, endpoints.list()) == "b");
  }

  TEST_CASE("alternating calls of two actions are both split evenly: each has a rotation of its own") {
    SeededRandom random(1);
    TestEndpoints endpoints({"a", "b"});
    const auto first = make_strategy("RoundRobin", {}, random);
    const auto second = make_strategy("RoundRobin", {}, random);
    std::map<std::string, int> of_first, of_second;
    for (int i = 0; i < 100; ++i) {
      ++of_first[chosen(*first, endpoints.list())];
      ++of_second[chosen(*second, endpoints.list())];
    }
    CHECK(of_first == std::map<std::string, int>{{"a", 50}, {"b", 50}});
    CHECK(of_second == of_first);
  }

  TEST_CASE("random spreads evenly") {
    SeededRandom random(7);
    TestEndpoints endpoints(20);
    const auto strategy = make_strategy("Random", {}, random);
    CHECK(chi_squared(counts(*strategy, endpoints.list(), 20000), 20, 20000) <
          43.8);  // p = 0.001, 19 degrees.
  }

  TEST_CASE("cpu usage takes a value below lowCpuUsage at once") {
    SeededRandom random(1);
    TestEndpoints endpoints(3);
    endpoints.node(0).cpu = 5;
    endpoints.node(1).cpu = 50;
    const auto strategy = make_strategy("CpuUsage", {}, random);  // Three endpoints: all are looked at.
    CHECK(counts(*strategy, endpoints.list(), 100) == std::map<std::string, int>{{"n0", 100}});
  }

  TEST_CASE("cpu usage takes the least value, and unknown ones never before a known one") {
    SeededRandom random(1);
    TestEndpoints endpoints(3);
    endpoints.node(1).cpu = 50;
    endpoints.node(2).cpu = 30;
    const auto strategy = make_strategy("CpuUsage", {}, random);
    CHECK(counts(*strategy, endpoints.list(), 100) == std::map<std::string, int>{{"n2", 100}});
  }

  TEST_CASE("cpu usage takes anybody when nothing is known") {
    SeededRandom random(1);
    TestEndpoints endpoints(3);
    const auto strategy = make_strategy("CpuUsage", {}, random);
    CHECK(chi_squared(counts(*strategy, endpoints.list(), 3000), 3, 3000) < 13.8);
  }

  TEST_CASE("cpu usage draws a sample: the busiest node is taken only when all draws fall on it") {
    SeededRandom random(3);
    TestEndpoints endpoints(10);
    for (int i = 0; i < 10; ++i) endpoints.node(i).cpu = 20 + i;
    const auto strategy = make_strategy("CpuUsage", {{"sampleCount", 2}}, random);
    const auto taken = counts(*strategy, endpoints.list(), 10000);
    // Of two draws with replacement, node i is the least with probability (2 (10 - i) - 1) / 100.
    for (int i = 0; i < 10; ++i) {
      const double expected = 100.0 * (2 * (10 - i) - 1);
      CHECK(taken.at("n" + std::to_string(i)) == doctest::Approx(expected).epsilon(0.25));
    }
  }

  TEST_CASE("lowCpuUsage moves the threshold; sampleCount 0 looks at all") {
    SeededRandom random(1);
    TestEndpoints endpoints(8);
    for (int i = 0; i < 8; ++i) endpoints.node(i).cpu = 90 - i;
    const auto all = make_strategy("CpuUsage", {{"sampleCount", 0}}, random);
    CHECK(counts(*all, endpoints.list(), 50) == std::map<std::string, int>{{"n7", 50}});
    const auto early = make_strategy("CpuUsage", {{"sampleCount", 0}, {"lowCpuUsage", 88.5}}, random);
    CHECK(counts(*early, endpoints.list(), 50) == std::map<std::string, int>{{"n2", 50}});
  }

  TEST_CASE("latency takes the quickest host, or the first below lowLatency") {
    SeededRandom random(1);
    TestEndpoints endpoints(4);
    endpoints.node(0).latency_ms = 40.0;
    endpoints.node(1).latency_ms = 12.5;
    endpoints.node(2).latency_ms = 12.0;
    const auto strategy = make_strategy("Latency", {}, random);
    CHECK(counts(*strategy, endpoints.list(), 50) == std::map<std::string, int>{{"n2", 50}});
    const auto patient = make_strategy("Latency", {{"lowLatency", 13}}, random);
    CHECK(counts(*patient, endpoints.list(), 50) == std::map<std::string, int>{{"n1", 50}});
    const auto one = make_strategy("Latency", {{"sampleCount", 1}}, random);
    CHECK(counts(*one, endpoints.list(), 1000).size() == 4);
  }

  TEST_CASE("the measuring options of Latency are read with the rest") {
    const auto options = read_latency_options({{"collectCount", 3}, {"pingInterval", 2.5}}).value();
    CHECK(options.collect_count == 3);
    CHECK(options.ping_interval == std::chrono::milliseconds(2500));
    CHECK(options.sample_count == 5);
  }

  TEST_CASE("an unknown strategy is refused with the list of those there are") {
    CHECK(refusal("Fastest", {}) ==
          "There is no strategy 'Fastest'; there are CpuUsage, Latency, LeastRequests, PeakEwma, Random, "
          "Rendezvous, RoundRobin, Shard, WeightedRandom, WeightedRoundRobin.");
  }

  TEST_CASE("a name finds its strategy in any case") {
    SeededRandom random(1);
    CHECK(StrategyTable().make("roundrobin", {}, random).ok());
    CHECK(StrategyTable().make("SHARD", {{"shardKey", "id"}}, random).ok());
  }

  TEST_CASE("an option nobody knows is refused, and an option of another strategy with its owner") {
    CHECK(
        refusal("Shard", {{"vnode", 3}}) ==
        "Strategy 'Shard' has no option 'vnode'; allowed are shardKey (a text), vnodes (an integer from 1 to "
        "100000), ringSize (an integer from 1 to 4294967296), cacheSize (an integer from 0 to 1000000).");
    CHECK(
        refusal("RoundRobin", {{"shardKey", "id"}}) ==
        "Strategy 'RoundRobin' has no option 'shardKey' (it is one of Shard and Rendezvous); it takes none.");
    CHECK(refusal("Random", {{"sampleCount", 2}}) ==
          "Strategy 'Random' has no option 'sampleCount' (it is one of CpuUsage, Latency, LeastRequests and "
          "PeakEwma); it takes none.");
  }

  TEST_CASE("an option of the wrong type or out of range is refused with what is allowed") {
    CHECK(refusal("CpuUsage", {{"lowCpuUsage", 150}}) ==
          "Strategy 'CpuUsage': option 'lowCpuUsage' is 150; allowed is a number from 0 to 100.");
    CHECK(refusal("CpuUsage", {{"sampleCount", 2.5}}) ==
          "Strategy 'CpuUsage': option 'sampleCount' is 2.5; allowed is an integer from 0 to 1000000.");
    CHECK(refusal("Latency", {{"pingInterval", "often"}}) ==
          "Strategy 'Latency': option 'pingInterval' is the text \"often\"; allowed is a number from 0.1 to "
          "86400.");
    CHECK(refusal("Shard", {{"shardKey", 5}}) ==
          "Strategy 'Shard': option 'shardKey' is 5; allowed is a text.");
    CHECK(refusal("Shard", arr("id")) ==
          "Strategy 'Shard': its options are a value of type array; allowed is an object or null.");
    for (const char* option : {"vnodes", "ringSize"}) CHECK_FALSE(refusal("Shard", {{option, 0}}).empty());
    CHECK_FALSE(refusal("Latency", {{"collectCount", 0}}).empty());
  }

  TEST_CASE("null stands for the default of an option") {
    SeededRandom random(1);
    const Value nulls{
        {"shardKey", nullptr}, {"vnodes", nullptr}, {"ringSize", nullptr}, {"cacheSize", nullptr}};
    CHECK(StrategyTable().make("Shard", nulls, random).ok());
  }

  TEST_CASE("a strategy of the user's own is made by its name, with its options") {
    struct PreferZone final : Strategy {
      std::string zone;
      const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection&) override {
        for (const Endpoint* endpoint : endpoints) {
          if (endpoint->node->metadata["zone"] == Value(zone)) return endpoint;
        }
        return endpoints.front();
      }
    };
    StrategyTable table;
    table.add("PreferZone", [](const StrategyContext& context) -> Result<std::unique_ptr<Strategy>> {
      auto strategy = std::make_unique<PreferZone>();
      strategy->zone = context.options["zone"].str_or("eu");
      return std::unique_ptr<Strategy>(std::move(strategy));
    });
    SeededRandom random(1);
    TestEndpoints endpoints(3);
    endpoints.node(2).metadata = {{"zone", "us"}};
    const auto strategy = table.make("PreferZone", {{"zone", "us"}}, random).value();
    CHECK(chosen(*strategy, endpoints.list()) == "n2");
    CHECK(table.names() == std::vector<std::string>{"CpuUsage", "Latency", "LeastRequests", "PeakEwma",
                                                    "PreferZone", "Random", "Rendezvous", "RoundRobin",
                                                    "Shard", "WeightedRandom", "WeightedRoundRobin"});
  }
}
