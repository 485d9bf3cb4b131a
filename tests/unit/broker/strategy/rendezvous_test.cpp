#include "broker/strategy/rendezvous.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <set>

#include "tests/unit/broker/strategy/backends.h"
#include "tests/unit/broker/strategy/endpoints.h"

namespace weft {
namespace {

constexpr int kKeys = 100'000;

std::unique_ptr<Strategy> rendezvous(Random& random, Value options = Value::object()) {
  options.set("shardKey", "key");
  return make_strategy("Rendezvous", options, random);
}

std::string place(Strategy& strategy, std::span<const Endpoint* const> endpoints, const Value& key) {
  return chosen(strategy, endpoints, Payload(Value{{"key", key}}));
}

// The endpoint of each of many keys.
std::vector<const Endpoint*> placements(RendezvousTable& table, std::span<const Endpoint* const> endpoints) {
  table.update(endpoints);
  std::vector<const Endpoint*> places;
  for (int i = 0; i < kKeys; ++i) {
    places.push_back(endpoints[table.find(hash_of_text("user-" + std::to_string(i)))]);
  }
  return places;
}

double count_of(const std::vector<const Endpoint*>& places, const Endpoint* endpoint) {
  return static_cast<double>(std::count(places.begin(), places.end(), endpoint));
}

}  // namespace

TEST_SUITE("rendezvous") {
  TEST_CASE("a key has one node, in whatever order nodes were found and whichever caller asks") {
    SeededRandom random(1);
    TestEndpoints forth(20);
    std::vector<const Endpoint*> back(forth.list().rbegin(), forth.list().rend());
    const auto one = rendezvous(random);
    const auto other = rendezvous(random);
    std::set<std::string> nodes;
    for (int i = 0; i < 500; ++i) {
      const std::string node = place(*one, forth.list(), i);
      CHECK(place(*other, back, i) == node);
      CHECK(place(*one, forth.list(), i) == node);
      nodes.insert(node);
    }
    CHECK(nodes.size() == 20);
  }

  TEST_CASE("placement never changes from one version to the next") {
    CHECK(hash_of_text("") == 17446724143218324825ULL);
    CHECK(hash_of_text("user-1") == 10383028258393391065ULL);
    CHECK(hash_of_text("a key that is longer than eight bytes") == 10346709369645343232ULL);
    SeededRandom random(1);
    TestEndpoints endpoints({"node-1", "node-2", "node-3"});
    endpoints.node(1).metadata = {{"weight", 2}};
    const auto strategy = rendezvous(random);
    std::string places;
    for (int key = 0; key < 24; ++key) places += place(*strategy, endpoints.list(), key).back();
    CHECK(places == "221211123122212133122322");
  }

  TEST_CASE("the key is found as Shard finds it; without one any node is taken") {
    SeededRandom random(1);
    TestEndpoints endpoints(8);
    const Payload params(Value{{"user", {{"ids", arr("u2", "alice")}}}});
    const Payload meta(Value{{"tenant", "alice"}});
    const auto direct = rendezvous(random);
    const std::string node = place(*direct, endpoints.list(), "alice");
    for (const char* path : {"user.ids[1]", "#tenant"}) {
      const auto strategy = make_strategy("Rendezvous", {{"shardKey", path}}, random);
      CHECK(chosen(*strategy, endpoints.list(), params, meta) == node);
    }
    RendezvousOptions options;
    options.key = [](const Selection& selection) { return (*selection.meta.tree())["tenant"]; };
    const auto by_function = make_rendezvous_strategy(options, random).value();
    CHECK(chosen(*by_function, endpoints.list(), params, meta) == node);
    CHECK(counts(*direct, endpoints.list(), 500).size() == 8);
  }

  TEST_CASE("keys spread evenly: the fullest node has at most 1.05 times the mean") {
    TestEndpoints endpoints(10);
    RendezvousTable table(kRendezvousSlots, "weight");
    const auto places = placements(table, endpoints.list());
    double most = 0;
    for (const Endpoint* endpoint : endpoints.list()) most = std::max(most, count_of(places, endpoint));
    CHECK(most / (kKeys / 10.0) <= 1.05);
  }

  TEST_CASE("a join moves the newcomer's keys and no others, and hardly more than its share") {
    for (const std::size_t size : {3, 10, 40}) {
      CAPTURE(size);
      TestEndpoints endpoints(size + 1);
      const auto before_it = endpoints.list().first(size);
      const Endpoint* newcomer = endpoints.list().back();
      RendezvousTable table(kRendezvousSlots, "weight");
      const auto before = placements(table, before_it);
      const auto after = placements(table, endpoints.list());
      int moved = 0;
      for (int i = 0; i < kKeys; ++i) {
        if (after[i] == before[i]) continue;
        ++moved;
        REQUIRE(after[i] == newcomer);
      }
      CHECK(moved == count_of(after, newcomer));  // None of the others' keys: 1.0 times the minimum.
      const double share = kKeys / static_cast<double>(size + 1);
      CHECK(moved == doctest::Approx(share).epsilon(size < 20 ? 0.02 : 0.05));
    }
  }

  TEST_CASE("a leave moves the keys of the one that went and no others, and spreads them") {
    TestEndpoints endpoints(10);
    RendezvousTable table(kRendezvousSlots, "weight");
    const auto before = placements(table, endpoints.list());
    const auto rest = endpoints.without("n3");
    const auto after = placements(table, rest);
    std::map<const Endpoint*, int> taken_over;
    for (int i = 0; i < kKeys; ++i) {
      if (before[i]->node->id == "n3") {
        ++taken_over[after[i]];
      } else {
        REQUIRE(after[i] == before[i]);
      }
    }
    CHECK(taken_over.size() == 9);
    for (const auto& [endpoint, count] : taken_over) CHECK(count == doctest::Approx(1111).epsilon(0.15));
  }

  TEST_CASE("weights are honoured, and a new weight moves keys of its node alone") {
    TestEndpoints endpoints(12);
    for (int i = 0; i < 12; ++i) endpoints.node(i).metadata = {{"weight", i % 4}};
    RendezvousTable table(kRendezvousSlots, "weight");
    const auto before = placements(table, endpoints.list());
    for (int i = 0; i < 12; ++i) {
      CHECK(count_of(before, endpoints.list()[i]) == doctest::Approx(kKeys * (i % 4) / 18.0).epsilon(0.04));
    }
    endpoints.node(7).metadata = {{"weight", 5}};
    const auto after = placements(table, endpoints.list());
    for (int i = 0; i < kKeys; ++i) {
      if (after[i] != before[i]) REQUIRE(after[i]->node->id == "n7");
    }
    CHECK(count_of(after, endpoints.list()[7]) == doctest::Approx(kKeys * 5 / 20.0).epsilon(0.02));
  }

  TEST_CASE("drained nodes have no keys, and the others those they would have without them") {
    TestEndpoints endpoints(12);
    RendezvousTable alone(kRendezvousSlots, "weight");
    const auto expected = placements(alone, endpoints.list().first(6));
    for (int i = 6; i < 12; ++i) endpoints.node(i).metadata = {{"weight", 0}};
    RendezvousTable table(kRendezvousSlots, "weight");
    CHECK(placements(table, endpoints.list()) == expected);
    for (int i = 0; i < 6; ++i) endpoints.node(i).metadata = {{"weight", 0}};
    const auto places = placements(table, endpoints.list());  // All are: better any than none.
    CHECK(std::set<const Endpoint*>(places.begin(), places.end()).size() == 12);
  }

  TEST_CASE("whatever list it is handed, the choice is one of it") {
    SeededRandom random(5);
    TestEndpoints endpoints(30);
    const auto strategy = rendezvous(random, {{"loadFactor", 1.1}});
    for (int round = 0; round < 1000; ++round) {
      std::vector<const Endpoint*> part;
      for (const Endpoint* endpoint : endpoints.list()) {
        if (random.below(30) < static_cast<std::size_t>(round % 31)) part.push_back(endpoint);
      }
      if (part.empty()) continue;
      if (round % 3 == 0) strategy->on_endpoints_changed();
      const Payload params(Value{{"key", round % 50}});
      const Endpoint* choice = strategy->select(part, {params, {}});
      REQUIRE(std::find(part.begin(), part.end(), choice) != part.end());
    }
  }

  TEST_CASE("with a load bound no endpoint gets more than loadFactor times its share of what is under way") {
    SeededRandom random(3);
    TestEndpoints endpoints(10);
    endpoints.node(4).metadata = {{"weight", 3}};
    const auto strategy = rendezvous(random, {{"loadFactor", 1.04}});
    std::list<Flight> flights;
    std::vector<std::size_t> of_each(10);
    int at_home = 0;
    const auto unbounded = rendezvous(random);
    for (int i = 0; i < 40'000; ++i) {
      // A third of all calls are for one key.
      const Payload params(Value{{"key", random.below(3) == 0 ? 0 : static_cast<int>(random.below(5000))}});
      const Endpoint* choice = strategy->select(endpoints.list(), {params, {}});
      if (choice == unbounded->select(endpoints.list(), {params, {}})) ++at_home;
      const auto at = static_cast<std::size_t>(
          std::find(endpoints.list().begin(), endpoints.list().end(), choice) - endpoints.list().begin());
      const double share = at == 4 ? 3.0 / 12 : 1.0 / 12;
      flights.emplace_back().begin(endpoints[at], {});
      REQUIRE(endpoints[at].in_flight() <= std::ceil(1.04 * endpoints.group.in_flight * share));
      ++of_each[at];
      if (flights.size() > 2400) {
        auto ended = flights.begin();
        std::advance(ended, random.below(8));  // In some order, and the load stays what it is.
        flights.erase(ended);
      }
    }
    double most = 0;
    for (std::size_t i = 0; i < 10; ++i)
      most = std::max(most, static_cast<double>(of_each[i]) / (i == 4 ? 3 : 1));
    CHECK(most / (40'000 / 12.0) <= 1.05);  // The bound is a whole number of calls, so a little above 1.04.
    CHECK(at_home > 20'000);  // Of those that are not for the one key, most are where they belong.
  }

  TEST_CASE("without a load bound, or with nothing else under way, a key stays where it is") {
    SeededRandom random(3);
    TestEndpoints endpoints(10);
    const auto strategy = rendezvous(random);
    const auto bounded = rendezvous(random, {{"loadFactor", 2}});
    const std::string home = place(*strategy, endpoints.list(), "a");
    CHECK(place(*bounded, endpoints.list(), "a") == home);
    std::list<Flight> flights;
    for (std::size_t i = 0; i < 10; ++i) {
      if (endpoints.node(i).id == home) {
        for (int n = 0; n < 50; ++n) flights.emplace_back().begin(endpoints[i], {});
      }
    }
    CHECK(place(*strategy, endpoints.list(), "a") == home);
    const std::string stand_in = place(*bounded, endpoints.list(), "a");
    CHECK(stand_in != home);
    CHECK(place(*bounded, endpoints.list(), "a") == stand_in);
  }

  TEST_CASE("options out of range are refused") {
    SeededRandom random(1);
    for (const Value& options : {Value{{"slots", 0}}, Value{{"loadFactor", 1}}, Value{{"loadFactor", "2"}},
                                 Value{{"shardKey", 1}}, Value{{"weightKey", 1}}, Value{{"vnodes", 10}}}) {
      CHECK_FALSE(StrategyTable().make("Rendezvous", options, random).ok());
    }
    RendezvousOptions options;
    options.load_factor = 0.5;
    CHECK_FALSE(make_rendezvous_strategy(options, random).ok());
  }
}

}  // namespace weft
