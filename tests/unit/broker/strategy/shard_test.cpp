#include "broker/strategy/shard.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "broker/strategy/js_text.h"
#include "tests/support/allocations.h"
#include "tests/support/vectors.h"
#include "tests/unit/broker/strategy/endpoints.h"

namespace weft {
namespace {

struct Owner {
  std::string name;
  std::optional<std::int64_t> age;
};
WEFT_FIELDS(Owner, name, age)

struct Post {
  std::int64_t id = 0;
  double score = 0;
  bool hidden = false;
  std::vector<Owner> owners;
  std::string user_id;
};
WEFT_FIELDS(Post, id, score, hidden, owners, user_id)

std::string js_text(const Value& value) {
  std::string out;
  append_js_text(value, out);
  return out;
}

std::string by_key(Strategy& strategy, const TestEndpoints& endpoints, const Value& key) {
  const Payload params(Value{{"key", key}});
  return chosen(strategy, endpoints.list(), params);
}

}  // namespace

TEST_SUITE("shard strategy") {
  TEST_CASE("keys go to the nodes of the table, whatever the order of discovery") {
    const std::pair<Value, std::string> of_three[] = {
        {"u1", "node-3"}, {"u2", "node-2"},    {"u3", "node-1"},  {"u4", "node-3"},  {"u5", "node-1"},
        {42, "node-1"},   {"alice", "node-3"}, {"bob", "node-1"}, {"ünï", "node-3"},
    };
    const std::pair<Value, std::string> of_two[] = {
        {"u1", "node-2"}, {"u2", "node-2"}, {"u3", "node-1"}, {"alice", "node-2"}};
    SeededRandom random(1);
    for (const std::vector<std::string>& ids : {std::vector<std::string>{"node-1", "node-2", "node-3"},
                                                std::vector<std::string>{"node-3", "node-1", "node-2"}}) {
      TestEndpoints endpoints(ids);
      const auto strategy = make_strategy("Shard", {{"shardKey", "key"}}, random);
      for (const auto& [key, node] : of_three) CHECK(by_key(*strategy, endpoints, key) == node);
    }
    TestEndpoints endpoints({"node-2", "node-1"});
    const auto strategy = make_strategy("Shard", {{"shardKey", "key"}}, random);
    for (const auto& [key, node] : of_two) CHECK(by_key(*strategy, endpoints, key) == node);
  }

  TEST_CASE("ring, hash and node are those recorded from Moleculer") {
    const Value recording = test::load_json_vector("shard.json");
    SeededRandom random(1);
    ShardHash hash_of;
    REQUIRE(recording["sets"].size() == 6);
    for (const Value& set : recording["sets"].items()) {
      std::vector<std::string> ids;
      for (const Value& id : set["nodes"].items()) ids.emplace_back(id.str());
      TestEndpoints endpoints(ids);
      Value options = set["options"];
      const auto ring_size = static_cast<std::uint64_t>(options["ringSize"].i64_or(1LL << 32));
      ShardRing ring(options["vnodes"].u64(), ring_size);
      ring.build(endpoints.list());
      REQUIRE(ring.last() == set["ring"].size());
      for (std::uint64_t position = 1; position <= ring.last(); ++position) {
        const Value& entry = set["ring"][position - 1];
        CHECK(ring.bound(position) == entry["key"].u64());
        CHECK(ring.slot(position).endpoint->node->id == entry["nodeID"].str());
      }
      options.set("shardKey", "key");
      const auto strategy = make_strategy("Shard", options, random);
      for (const Value& row : set["cases"].items()) {
        const std::string key = js_text(row["key"]);
        CAPTURE(key);
        CHECK(hash_of(key).value() % ring_size == row["hash"].u64());
        CHECK(by_key(*strategy, endpoints, row["key"]) == row["nodeID"].str());
      }
    }
  }

  TEST_CASE("a changed list gives a new ring, and not before it is told of") {
    SeededRandom random(1);
    TestEndpoints endpoints({"node-1", "node-2", "node-3"});
    const auto strategy = make_strategy("Shard", {{"shardKey", "key"}}, random);
    CHECK(by_key(*strategy, endpoints, "alice") == "node-3");
    const auto two = endpoints.without("node-3");
    strategy->on_endpoints_changed();
    const Payload alice(Value{{"key", "alice"}});
    CHECK(chosen(*strategy, two, alice) == "node-2");
    CHECK(chosen(*strategy, endpoints.list(), alice) == "node-2");
    strategy->on_endpoints_changed();
    CHECK(chosen(*strategy, endpoints.list(), alice) == "node-3");
  }

  TEST_CASE("an endpoint that is out for a while is stood in for, always by the same one") {
    SeededRandom random(1);
    TestEndpoints endpoints({"node-1", "node-2", "node-3"});
    const auto strategy = make_strategy("Shard", {{"shardKey", "key"}}, random);
    const Payload alice(Value{{"key", "alice"}});
    CHECK(chosen(*strategy, endpoints.list(), alice) == "node-3");
    const auto rest = endpoints.without("node-3");
    const std::string stand_in = chosen(*strategy, rest, alice);
    CHECK(stand_in != "node-3");
    for (int i = 0; i < 20; ++i) CHECK(chosen(*strategy, rest, alice) == stand_in);
    CHECK(chosen(*strategy, endpoints.list(), alice) == "node-3");
    const Payload bob(Value{{"key", "bob"}});
    CHECK(chosen(*strategy, rest, bob) == "node-1");  // Keys of the others stay where they are.
  }

  TEST_CASE("whatever is left of the list, the choice is one of it") {
    SeededRandom random(5);
    TestEndpoints endpoints(64);
    const auto strategy = make_strategy("Shard", {{"shardKey", "key"}}, random);
    (void)by_key(*strategy, endpoints, "first");
    for (int round = 0; round < 500; ++round) {
      std::vector<const Endpoint*> left;
      for (const Endpoint* endpoint : endpoints.list()) {
        if (random.below(64) < static_cast<std::size_t>(round % 64)) left.push_back(endpoint);
      }
      if (left.empty()) continue;
      const Payload params(Value{{"key", round}});
      const Endpoint* choice = strategy->select(left, {params, {}});
      CHECK(std::find(left.begin(), left.end(), choice) != left.end());
    }
  }

  TEST_CASE("a missing key, a null and a strategy without shardKey spread over all") {
    SeededRandom random(1);
    TestEndpoints endpoints(8);
    const auto strategy = make_strategy("Shard", {{"shardKey", "key"}}, random);
    const auto keyless = make_strategy("Shard", {}, random);
    const Payload null_key(Value{{"key", nullptr}});
    const Payload no_object(Value(5));
    std::set<std::string> of_absent, of_null, of_scalar, of_keyless;
    for (int i = 0; i < 200; ++i) {
      of_absent.insert(chosen(*strategy, endpoints.list()));
      of_null.insert(chosen(*strategy, endpoints.list(), null_key));
      of_scalar.insert(chosen(*strategy, endpoints.list(), no_object));
      of_keyless.insert(chosen(*keyless, endpoints.list(), null_key));
    }
    for (const auto& seen : {of_absent, of_null, of_scalar, of_keyless}) CHECK(seen.size() == 8);
  }

  TEST_CASE("the key is found by a path in params, or behind # in meta") {
    SeededRandom random(1);
    TestEndpoints endpoints({"node-1", "node-2", "node-3"});
    const Payload params(Value{{"user", {{"ids", arr("u2", "alice")}}}});
    const Payload meta(Value{{"tenant", {{"id", 42}}}});
    for (const char* path : {"user.ids[1]", "user.ids.1"}) {
      const auto strategy = make_strategy("Shard", {{"shardKey", path}}, random);
      CHECK(chosen(*strategy, endpoints.list(), params, meta) == "node-3");
    }
    const auto by_meta = make_strategy("Shard", {{"shardKey", "#tenant.id"}}, random);
    CHECK(chosen(*by_meta, endpoints.list(), params, meta) == "node-1");
  }

  TEST_CASE("a key in a typed struct is found as in a tree") {
    SeededRandom random(1);
    TestEndpoints endpoints(50);
    const Post post{7, 1.5, true, {{"ann", {}}, {"alice", 33}}, "u1"};
    const Payload typed = Payload::borrow(post);
    const Payload tree(typed.to_value().value());
    for (const char* path :
         {"id", "score", "hidden", "owners[1].name", "owners.1.age", "user_id", "owners", "owners[0]"}) {
      CAPTURE(path);
      const auto strategy = make_strategy("Shard", {{"shardKey", path}}, random);
      const Payload again = Payload::borrow(post);  // Not yet turned into a tree.
      CHECK(chosen(*strategy, endpoints.list(), again) == chosen(*strategy, endpoints.list(), tree));
    }
    for (const char* path : {"owners[0].age", "nobody", "id.x", "owners[2].name", "owners.x"}) {
      CAPTURE(path);
      const auto strategy = make_strategy("Shard", {{"shardKey", path}}, random);
      std::set<std::string> seen;
      for (int i = 0; i < 100; ++i) seen.insert(chosen(*strategy, endpoints.list(), Payload::borrow(post)));
      CHECK(seen.size() > 10);  // No key: anybody.
    }
  }

  TEST_CASE("a function may find the key") {
    SeededRandom random(1);
    TestEndpoints endpoints({"node-1", "node-2", "node-3"});
    ShardOptions options;
    options.key = [](const Selection& selection) { return Value(selection.params.value()["name"].str()); };
    const auto strategy = make_shard_strategy(options, random).value();
    CHECK(chosen(*strategy, endpoints.list(), Payload(Value{{"name", "alice"}})) == "node-3");
  }

  TEST_CASE("values that are no text are hashed by their JavaScript text") {
    const std::pair<Value, std::string_view> rows[] = {
        {0, "0"},
        {-7, "-7"},
        {INT64_MAX, "9223372036854775807"},
        {UINT64_MAX, "18446744073709551615"},
        {1.5, "1.5"},
        {-0.0, "0"},
        {5.0, "5"},
        {0.1, "0.1"},
        {100.25, "100.25"},
        {1e20, "100000000000000000000"},
        {123456789012345680000.0, "123456789012345680000"},
        {1e21, "1e+21"},
        {1.5e300, "1.5e+300"},
        {1e-6, "0.000001"},
        {1e-7, "1e-7"},
        {-1.25e-9, "-1.25e-9"},
        {5e-324, "5e-324"},
        {std::numeric_limits<double>::infinity(), "Infinity"},
        {-std::numeric_limits<double>::infinity(), "-Infinity"},
        {std::numeric_limits<double>::quiet_NaN(), "NaN"},
        {true, "true"},
        {false, "false"},
        {arr(1, "b", arr(2, nullptr, 3), nullptr), "1,b,2,,3,"},
        {Value{{"a", 1}}, "[object Object]"},
        {Value(Binary{"abc"}), "abc"},
        {Value(Timestamp{0}), "1970-01-01T00:00:00.000Z"},
    };
    for (const auto& [value, text] : rows) CHECK(js_text(value) == text);
  }

  TEST_CASE("names are ordered as JavaScript orders them, by UTF-16 code units") {
    // In order: ASCII, Latin, a surrogate pair (U+1F600), a character of the private use area (U+E000),
    // U+FFFD.
    const std::vector<std::string> ordered = {
        "",  "Node-1",           "node-10",          "node-2",       "node-9",
        "é", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81", "\xee\x80\x80", "\xef\xbf\xbd"};
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      for (std::size_t j = 0; j < ordered.size(); ++j) {
        CAPTURE(ordered[i]);
        CAPTURE(ordered[j]);
        CHECK(less_by_utf16(ordered[i], ordered[j]) == (i < j));
      }
    }
  }

  TEST_CASE("every hash belongs to the first position whose bound is not below it") {
    for (const auto& [nodes, vnodes, ring_size] :
         {std::tuple<std::size_t, std::size_t, std::uint64_t>{3, 10, 1000},
          {7, 3, 10},
          {2, 100, 7},
          {1, 1, 1}}) {
      TestEndpoints endpoints(nodes);
      ShardRing ring(vnodes, ring_size);
      ring.build(endpoints.list());
      for (std::uint64_t hash = 0; hash < ring_size; ++hash) {
        std::uint64_t first = 1;
        while (ring.bound(first) < hash) ++first;
        CHECK(ring.position_of(hash) == first);
      }
    }
  }

  TEST_CASE("many keys spread evenly over the ring") {
    SeededRandom random(1);
    TestEndpoints endpoints(10);
    const auto strategy = make_strategy("Shard", {{"shardKey", "key"}, {"cacheSize", 0}}, random);
    std::map<std::string, int> taken;
    for (int i = 0; i < 20000; ++i) ++taken[by_key(*strategy, endpoints, "user-" + std::to_string(i))];
    for (const auto& [id, count] : taken) CHECK(count == doctest::Approx(2000).epsilon(0.08));
    CHECK(taken.size() == 10);
  }

  TEST_CASE("the cache makes room by what nobody asked for, and never lies") {
    PositionCache cache(3);
    cache.insert("a", 1);
    cache.insert("b", 2);
    cache.insert("c", 3);
    CHECK(cache.find("a") == 1);
    cache.insert("d", 4);  // "b" is the first that was not asked for.
    CHECK(cache.find("b") == 0);
    CHECK(cache.find("a") == 1);
    CHECK(cache.find("c") == 3);
    CHECK(cache.find("d") == 4);
    cache.insert("e", 5);  // All were asked for: somebody goes all the same.
    CHECK(cache.find("e") == 5);
    CHECK(cache.size() == 3);
    cache.clear();
    CHECK(cache.find("a") == 0);

    SeededRandom random(9);
    PositionCache large(100);
    std::map<std::string, std::uint64_t> truth;
    for (int i = 0; i < 20000; ++i) {
      const std::string key = std::to_string(random.below(300));
      const std::uint64_t known = large.find(key);
      if (known == 0) {
        truth[key] = static_cast<std::uint64_t>(i) + 1;
        large.insert(key, truth[key]);
      } else if (known != truth[key]) {
        FAIL("key " << key << " was " << truth[key] << ", is " << known);
      }
      CHECK(large.size() <= 100);
    }
    large.insert(std::string(PositionCache::kKeyBytesMax + 1, 'x'), 5);
    CHECK(large.find(std::string(PositionCache::kKeyBytesMax + 1, 'x')) == 0);
  }

  TEST_CASE("the choice is the same with and without the cache") {
    SeededRandom random(1);
    TestEndpoints endpoints(5);
    const auto cached = make_strategy("Shard", {{"shardKey", "key"}, {"cacheSize", 16}}, random);
    const auto plain = make_strategy("Shard", {{"shardKey", "key"}, {"cacheSize", 0}}, random);
    for (int i = 0; i < 2000; ++i) {
      const Value key(static_cast<int>(random.below(40)));
      CHECK(by_key(*cached, endpoints, key) == by_key(*plain, endpoints, key));
    }
  }

  TEST_CASE("selecting allocates nothing once the key is known") {
    SeededRandom random(1);
    TestEndpoints endpoints(1000);
    for (int i = 0; i < 1000; ++i) {
      endpoints.node(i).cpu = i % 100;
      endpoints.node(i).latency_ms = i;
    }
    const Payload params(Value{{"key", "a key that is longer than fourteen bytes"}, {"number", 123456}});
    for (const auto& [name, options] : {std::pair<const char*, Value>{"RoundRobin", {}},
                                        {"Random", {}},
                                        {"CpuUsage", {}},
                                        {"Latency", {}},
                                        {"LeastRequests", {}},
                                        {"PeakEwma", {}},
                                        {"WeightedRoundRobin", {{"slowStart", 10}}},
                                        {"WeightedRandom", {{"slowStart", 10}}},
                                        {"Rendezvous", {{"shardKey", "key"}, {"loadFactor", 1.25}}},
                                        {"Shard", {{"shardKey", "key"}}},
                                        {"Shard", {{"shardKey", "number"}}}}) {
      const std::string strategy_name = name;
      CAPTURE(strategy_name);
      const auto strategy = make_strategy(name, options, random);
      const Payload meta;
      (void)strategy->select(endpoints.list(), {params, meta});
      const std::size_t before = allocation_count();
      for (int i = 0; i < 1000; ++i) (void)strategy->select(endpoints.list(), {params, meta});
      CHECK(allocation_count() == before);
    }
  }
}
}  // namespace weft
