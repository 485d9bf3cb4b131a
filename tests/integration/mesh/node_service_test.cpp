#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "lib/protocol/serializer.h"
#include "tests/support/sim_mesh.h"

namespace weft {

using namespace std::chrono_literals;
using test::make_service;
using test::ScriptedNode;
using test::service_info;
using test::SimMesh;

namespace {

using Keys = std::vector<std::string>;

Keys keys_of(const Value& object) {
  Keys keys;
  for (const Member& member : object.members()) keys.push_back(member.key);
  return keys;
}

const Value& row_of(const Value& rows, std::string_view key, std::string_view value) {
  static const Value kNone;
  for (const Value& row : rows.items()) {
    if (row[key] == Value(value)) return row;
  }
  return kNone;
}

// Two nodes: "a" asks, "b" offers v2.posts; both offer "shared".
struct Setup {
  Setup() {
    mesh.add("a").add_service(shared());
    Broker& b = mesh.add("b", {.metadata = {{"zone", "eu"}}});
    b.add_service(shared());
    auto posts = make_service("posts", [](Service& s) {
      s.version(2).settings(Value{{"rest", "posts/"}, {"token", "x"}, {"$secureSettings", arr("token")}});
      s.action("get", [](Context&) { return 1; }, {.params = Value{{"id", "number"}}});
      s.action("guarded", [](Context&) { return 1; }, {.visibility = Visibility::kProtected});
      s.action("hidden", [](Context&) { return 1; }, {.visibility = Visibility::kPrivate});
      s.event("cache.clean.posts", [](Context&) {});
      s.event("$node.connected", [](Context&) {});
      s.event("user.*", [](Context&) {}, {.group = "users"});
    });
    b.add_service(posts);
    mesh.start();
  }
  static std::shared_ptr<Service> shared() {
    return make_service("shared", [](Service& s) { s.action("x", [](Context&) { return 1; }); });
  }
  Value ask(std::string_view action, Value params = Value::object(), std::string_view node = {}) {
    return mesh.await(mesh["a"].call(action, std::move(params), {.node = node}));
  }

  SimMesh mesh;
};

}  // namespace

TEST_SUITE("$node") {
  TEST_CASE("list shows every node that is known, oneself first") {
    Setup s;
    s.mesh.run_for(20s);  // A heartbeat or two.
    const Value rows = s.ask("$node.list");
    REQUIRE(rows.size() == 2);
    CHECK(keys_of(rows[0]) == Keys{"id", "instanceID", "available", "local", "lastHeartbeatTime", "config",
                                   "client", "metadata", "ipList", "port", "hostname", "udpAddress", "cpu",
                                   "cpuSeq", "seq", "offlineSince"});
    CHECK(rows[0]["id"].str() == "a");
    CHECK(rows[0]["local"] == Value(true));
    CHECK(rows[1]["id"].str() == "b");
    CHECK(rows[1]["local"] == Value(false));
    CHECK(rows[1]["available"] == Value(true));
    CHECK(to_json(rows[1]["metadata"]) == R"({"zone":"eu"})");
    CHECK(rows[1]["cpu"].i64() == 10);
    CHECK(rows[1]["port"].is_null());
    CHECK(rows[1]["hostname"].str() == "b");
    CHECK(rows[1]["offlineSince"].is_null());
    CHECK_FALSE(rows[0].contains("services"));
    const Value with = s.ask("$node.list", Value{{"withServices", true}});
    CHECK(with[1]["services"].size() == 3);
    CHECK(with[0]["services"].size() == 2);
    // Asked of another node it is that one's view.
    CHECK(s.ask("$node.list", Value::object(), "b")[0]["id"].str() == "b");
    s.mesh.stop("b");
    s.mesh.run_for(100ms);
    const Value after = s.ask("$node.list");
    REQUIRE(after.size() == 2);
    CHECK(after[1]["available"] == Value(false));
    CHECK(after[1]["offlineSince"].is_number());
    CHECK(s.ask("$node.list", Value{{"onlyAvailable", "true"}}).size() == 1);
  }

  TEST_CASE("services are grouped by full name over nodes, or one row each") {
    Setup s;
    const Value rows = s.ask("$node.services", Value{{"withActions", true}, {"withEvents", true}});
    CHECK(rows.size() == 3);
    const Value& posts = row_of(rows, "fullName", "v2.posts");
    CHECK(
        to_json(posts) ==
        R"({"name":"posts","version":2,"fullName":"v2.posts","settings":{"rest":"posts/"},"metadata":{},)"
        R"("local":false,"available":true,"nodes":["b"],)"
        R"("actions":{"v2.posts.get":{"params":{"id":"number"},"rawName":"get","name":"v2.posts.get"},)"
        R"("v2.posts.guarded":{"visibility":"protected","rawName":"guarded","name":"v2.posts.guarded"}},)"
        R"("events":{"cache.clean.posts":{"name":"cache.clean.posts"},"user.*":{"name":"user.*","group":"users"}}})");
    std::set<std::string> nodes;
    const Value& shared = row_of(rows, "name", "shared");
    for (const Value& node : shared["nodes"].items()) nodes.insert(std::string(node.str()));
    CHECK(nodes == std::set<std::string>{"a", "b"});
    CHECK_FALSE(row_of(s.ask("$node.services"), "name", "shared").contains("actions"));
    CHECK(s.ask("$node.services", Value{{"grouping", false}}).size() == 5);
    const Value single = s.ask("$node.services", Value{{"grouping", "false"}, {"skipInternal", 1}});
    CHECK(single.size() == 3);
    CHECK(single[0]["nodeID"].is_string());
    CHECK_FALSE(single[0].contains("nodes"));
    CHECK(s.ask("$node.services", Value{{"skipInternal", true}}).size() == 2);
    CHECK(s.ask("$node.services", Value{{"onlyLocal", true}}).size() == 2);
    CHECK(s.mesh.await(s.mesh["a"].try_call("$node.services", Value{{"onlyLocal", arr()}})).error().code() ==
          422);
  }

  TEST_CASE("a group's actions are the union over its nodes, whatever the order they were learnt in") {
    for (const bool larger_first : {false, true}) {
      SimMesh mesh;
      mesh.add("a");
      ScriptedNode z(mesh, "z");
      ScriptedNode n(mesh, "n");
      mesh.start();
      (larger_first ? z : n).announce(1, arr(service_info("posts", {"list", "create"}, {"e1"})));
      mesh.run_for(20ms);
      (larger_first ? n : z).announce(1, arr(service_info("posts", {"list"}, {"e2"})));
      mesh.run_for(20ms);
      const Value rows = mesh.await(mesh["a"].call(
          "$node.services", {{"withActions", true}, {"withEvents", true}, {"skipInternal", true}}));
      REQUIRE(rows.size() == 1);
      CHECK(rows[0]["actions"].size() == 2);
      CHECK(rows[0]["events"].size() == 2);
      CHECK(rows[0]["nodes"].size() == 2);
    }
  }

  TEST_CASE("what an advert leaves out shows as empty") {
    SimMesh mesh;
    mesh.add("a");
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.announce(1,
                  arr(Value{{"name", "x"}, {"version", 2}, {"settings", nullptr}, {"actions", nullptr}},
                      Value{{"name", "y"}, {"metadata", nullptr}, {"events", arr()}, {"fullName", nullptr}}));
    mesh.run_for(20ms);
    const Value rows = mesh.await(mesh["a"].call(
        "$node.services", {{"withActions", true}, {"withEvents", true}, {"skipInternal", true}}));
    REQUIRE(rows.size() == 2);
    CHECK(
        to_json(rows[0]) ==
        R"({"name":"x","version":2,"fullName":"v2.x","settings":{},"metadata":{},"local":false,"available":true,)"
        R"("nodes":["p"],"actions":{},"events":{}})");
    CHECK(rows[1]["fullName"].str() == "y");
    CHECK_FALSE(rows[1].contains("version"));
    CHECK(to_json(rows[1]["settings"]) == "{}");
  }

  TEST_CASE("actions are listed with their endpoints, and stay listed when nobody offers them any more") {
    Setup s;
    const Value rows = s.ask("$node.actions", Value{{"withEndpoints", true}, {"skipInternal", true}});
    CHECK(to_json(row_of(rows, "name", "v2.posts.get")) ==
          R"({"name":"v2.posts.get","count":1,"hasLocal":false,"available":true,)"
          R"("action":{"params":{"id":"number"},"rawName":"get","name":"v2.posts.get"},)"
          R"("endpoints":[{"nodeID":"b","state":true,"available":true}]})");
    const Value& shared = row_of(rows, "name", "shared.x");
    CHECK(shared["count"].i64() == 2);
    CHECK(shared["hasLocal"] == Value(true));
    CHECK(shared["endpoints"].size() == 2);
    CHECK(row_of(rows, "name", "v2.posts.guarded").is_null());
    CHECK(row_of(rows, "name", "$node.list").is_null());
    CHECK_FALSE(row_of(s.ask("$node.actions"), "name", "$node.list").is_null());
    CHECK(row_of(s.ask("$node.actions", Value{{"onlyLocal", true}}), "name", "v2.posts.get").is_null());
    s.mesh.stop("b");
    s.mesh.run_for(100ms);
    CHECK(to_json(row_of(s.ask("$node.actions"), "name", "v2.posts.get")) ==
          R"({"name":"v2.posts.get","count":0,"hasLocal":false,"available":false})");
    CHECK(row_of(s.ask("$node.actions", Value{{"onlyAvailable", true}}), "name", "v2.posts.get").is_null());
  }

  TEST_CASE("events are listed by pattern and group") {
    Setup s;
    const Value rows = s.ask("$node.events", Value{{"withEndpoints", true}});
    CHECK(
        to_json(row_of(rows, "name", "user.*")) ==
        R"({"name":"user.*","count":1,"hasLocal":false,"available":true,"group":"users",)"
        R"("event":{"name":"user.*","group":"users"},"endpoints":[{"nodeID":"b","state":true,"available":true}]})");
    CHECK(row_of(rows, "name", "cache.clean.posts")["group"].str() == "posts");
  }

  TEST_CASE("health, options and metrics answer from either side") {
    Setup s;
    for (const char* node : {"a", "b"}) {
      const Value health = s.ask("$node.health", Value::object(), node);
      for (const char* key : {"cpu", "mem", "os", "process", "net", "time"}) {
        CAPTURE(key);
        CHECK(health[key].is_object());
      }
      CHECK(health["net"]["ip"].size() == 1);
      CHECK(health["time"]["now"].is_integer());
      CHECK(health["time"]["iso"].is_string());
      const Value options = s.ask("$node.options", Value::object(), node);
      CHECK(options["nodeID"].str() == node);
      CHECK(options["registry"]["strategy"].str() == "RoundRobin");
      const auto metrics = s.mesh.await(s.mesh["a"].try_call("$node.metrics", {}, {.node = node}));
      CHECK(metrics.error().code() == 400);
      CHECK(metrics.error().type() == "METRICS_DISABLED");
    }
  }

  TEST_CASE("a node without internal services offers none") {
    SimMesh mesh;
    mesh.add("a", {.internal_services = false});
    mesh.add("b");
    mesh.start();
    CHECK(mesh.await(mesh["b"].try_call("$node.list", {}, {.node = "a"})).error().code() == 404);
    CHECK(mesh.sees("b", "a"));
  }
}

}  // namespace weft
