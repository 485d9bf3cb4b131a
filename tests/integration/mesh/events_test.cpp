#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/protocol/serializer.h"
#include "tests/support/sim_mesh.h"

namespace weft {

using namespace std::chrono_literals;
using test::make_service;
using test::ScriptedNode;
using test::SimMesh;

namespace {

using Lines = std::vector<std::string>;

// Who got which event, in order: "node service pattern".
struct Seen {
  Lines lines;

  std::shared_ptr<Service> subscriber(std::string name, const Lines& patterns, std::string group = {}) {
    return make_service(std::move(name), [&](Service& s) {
      for (const std::string& pattern : patterns) {
        SubscriptionOptions options;
        options.group = group;
        s.event(
            pattern,
            [this, pattern](Context& c) {
              lines.push_back(c.broker().node_id() + " " + c.service()->full_name() + " " + pattern);
            },
            options);
      }
    });
  }
  // The lines in order of the alphabet, and an empty list again.
  Lines take() {
    Lines sorted = std::move(lines);
    lines.clear();
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  [[nodiscard]] std::map<std::string, int> counts() const {
    std::map<std::string, int> by_line;
    for (const std::string& line : lines) ++by_line[line];
    return by_line;
  }
};

Value context_of(Context& c) {
  Value groups = Value::array();
  for (const std::string& group : c.event_groups()) groups.push_back(group);
  const char* const types[] = {"emit", "broadcast", "broadcastLocal"};
  return Value{{"event", c.event()},
               {"type", types[static_cast<int>(c.event_type())]},
               {"groups", groups},
               {"nodeID", c.node_id()},
               {"level", c.level()},
               {"caller", c.caller()},
               {"requestID", c.request_id()},
               {"parentID", c.parent_id()},
               {"id", c.id()},
               {"meta", c.meta()},
               {"headers", c.headers().is_null() ? Value::object() : c.headers()},
               {"params", c.params.value()}};
}

}  // namespace

TEST_SUITE("events") {
  TEST_CASE("groups decide who gets an event") {
    SimMesh mesh;
    Seen seen;
    for (const char* id : {"a", "b"}) {
      Broker& broker = mesh.add(id, {.registry = {.prefer_local = false}});
      broker.add_service(seen.subscriber("mail", {"order.paid"}, "payment"));
      broker.add_service(seen.subscriber("payment", {"order.paid"}));
      broker.add_service(seen.subscriber("audit", {"order.*"}));
    }
    mesh.add("c");
    mesh.start();
    for (const char* from : {"a", "c"}) {
      CAPTURE(from);
      const auto group_of = [](const std::string& line) {
        return line.find("audit") != std::string::npos ? "audit" : "payment";
      };
      const auto groups = [&] {
        std::map<std::string, int> counted;
        for (const std::string& line : seen.take()) ++counted[group_of(line)];
        return counted;
      };
      using Counts = std::map<std::string, int>;
      mesh[from].emit("order.paid");
      mesh.run_for(50ms);
      CHECK(groups() == Counts{{"payment", 1}, {"audit", 1}});
      const std::string_view audit[] = {"audit"};
      mesh[from].emit("order.paid", {}, {.groups = audit});
      mesh.run_for(50ms);
      CHECK(groups() == Counts{{"audit", 1}});
      const std::string_view payment[] = {"payment"};
      mesh[from].broadcast("order.paid", {}, {.groups = payment});
      mesh.run_for(50ms);
      CHECK(groups() == Counts{{"payment", 4}});
      mesh[from].broadcast("order.paid");
      mesh.run_for(50ms);
      CHECK(groups() == Counts{{"payment", 4}, {"audit", 2}});
      const std::string_view nobody[] = {"mail", "x"};
      mesh[from].emit("order.paid", {}, {.groups = nobody});
      mesh[from].broadcast("order.paid", {}, {.groups = nobody});
      mesh.run_for(50ms);
      CHECK(groups().empty());
    }
  }

  TEST_CASE("a broadcast reaches every instance once, the sender's own too, whoever balances") {
    for (const bool disable_balancer : {false, true}) {
      CAPTURE(disable_balancer);
      SimMesh mesh;
      Seen seen;
      for (const char* id : {"a", "b", "c"}) {
        mesh.add(id, {.disable_balancer = disable_balancer})
            .add_service(seen.subscriber("s", {"e", "e.*", "**"}));
      }
      mesh.start();
      seen.lines.clear();  // Of what happened at the start.
      mesh["a"].broadcast("e");
      mesh.run_for(50ms);
      CHECK(seen.take() == Lines{"a s **", "a s e", "b s **", "b s e", "c s **", "c s e"});
      mesh["a"].broadcast_local("e.x");
      mesh.run_for(50ms);
      CHECK(seen.take() == Lines{"a s **", "a s e.*"});
    }
  }

  TEST_CASE("with a bus that balances, one instance of each group gets an emitted event") {
    SimMesh mesh;
    Seen seen;
    for (const char* id : {"a", "b"}) {
      Broker& broker = mesh.add(id, {.disable_balancer = true});
      broker.add_service(seen.subscriber("mail", {"order.*"}));
      broker.add_service(seen.subscriber("audit", {"order.paid"}));
    }
    mesh.start();
    for (int i = 0; i < 20; ++i) mesh["a"].emit("order.paid");
    mesh.run_for(100ms);
    const auto counts = seen.counts();
    CHECK(seen.lines.size() == 40);
    CHECK(counts.at("a mail order.*") + counts.at("b mail order.*") == 20);
    CHECK(counts.at("a audit order.paid") + counts.at("b audit order.paid") == 20);
    CHECK(counts.size() == 4);  // Both nodes have their share.
  }

  TEST_CASE(
      "with a bus that balances, an event reaches who means it though another's subscription is wider") {
    for (const auto carrier : {SimMesh::Carrier::kBus, SimMesh::Carrier::kMemory}) {
      SimMesh mesh(carrier);
      Seen seen;
      mesh.add("a", {.disable_balancer = true});
      // What b subscribes takes c's events too: the bus knows no narrower one.
      mesh.add("b", {.disable_balancer = true}).add_service(seen.subscriber("s", {"a?c", "user.cre*"}));
      mesh.add("c", {.disable_balancer = true}).add_service(seen.subscriber("s", {"abd", "user.gone"}));
      mesh.start();
      seen.lines.clear();  // Of what happened at the start.
      for (int i = 0; i < 20; ++i) {
        for (const char* event : {"abc", "abd", "user.created", "user.gone"}) mesh["a"].emit(event);
      }
      mesh.run_for(200ms);
      CHECK(seen.counts() ==
            std::map<std::string, int>{
                {"b s a?c", 20}, {"b s user.cre*", 20}, {"c s abd", 20}, {"c s user.gone", 20}});
      // What nobody means is not passed around.
      const std::string_view group[] = {"s"};
      mesh["a"].emit("nobody", {}, {.groups = group});
      mesh.run_for(200ms);
      CHECK(seen.lines.size() == 80);
    }
  }

  TEST_CASE("patterns: which event fits which subscription") {
    struct Row {
      const char* event;
      const char* pattern;
      bool fits;
    };
    const Row rows[] = {
        {"user.created", "user.*", true},
        {"user.created.x", "user.**", true},
        {"a", "*", true},
        {"a.b", "**", true},
        {"order.v1.paid", "order.*.paid", true},
        {"order.v1.x.paid", "order.**.paid", true},
        {"abc", "a?c", true},
        {"userx", "user*", true},
        {"user.x", "user*", true},
        {"$node.connected", "$node.*", true},
        {"a+b", "a+b", true},
        {"user.created.x", "user.*", false},
        {"user", "user.*", false},
        {"a.b", "*", false},
        {"order.v1.x.paid", "order.*.paid", false},
        {"config.site.changed", "config.site.**.changed", false},
    };
    for (const Row& row : rows) {
      CAPTURE(row.event);
      CAPTURE(row.pattern);
      SimMesh mesh;
      Seen seen;
      mesh.add("a");
      mesh.add("b").add_service(seen.subscriber("s", {row.pattern}));
      mesh.start();
      seen.lines.clear();  // Of what happened at the start.
      mesh["a"].emit(row.event);
      mesh.run_for(20ms);
      CHECK(seen.lines.size() == (row.fits ? 1 : 0));
    }
  }

  TEST_CASE("an event that nobody listens to costs no packet; with a bus that balances and a group, one") {
    for (const bool disable_balancer : {false, true}) {
      CAPTURE(disable_balancer);
      SimMesh mesh;
      Broker& a = mesh.add("a", {.disable_balancer = disable_balancer});
      ScriptedNode peer(mesh, "p");
      mesh.start();
      const std::string action;
      const BalancedEvent everything[] = {{"x", "**"}, {"y", "**"}};
      peer.transporter->subscribe_balanced({}, everything);
      mesh.run_for(50ms);
      a.emit("nobody.cares");
      a.broadcast("nobody.cares");
      const std::string_view group[] = {"x"};
      a.broadcast("nobody.cares", {}, {.groups = group});
      mesh.run_for(50ms);
      CHECK(peer.count(PacketType::kEvent) == 0);
      a.emit("nobody.cares", {{"n", 1}}, {.groups = group});
      mesh.run_for(50ms);
      CHECK(peer.count(PacketType::kEvent) == (disable_balancer ? 1 : 0));
      if (!disable_balancer) continue;
      const Value packet = peer.last(PacketType::kEvent);
      CHECK(to_json(packet["groups"]) == R"(["x"])");
      CHECK(packet["broadcast"] == Value(false));
      CHECK(to_json(packet["data"]) == R"({"n":1})");
      CHECK(packet.contains("needAck"));
    }
  }

  TEST_CASE("overlapping patterns of a group are each run once, on whichever nodes they lie") {
    struct Row {
      const char* what;
      std::map<std::string, Lines> patterns;  // By node.
      int runs;                               // Of each event.
    };
    const Row rows[] = {
        {"both nodes have both", {{"b", {"user.created", "user.*"}}, {"c", {"user.created", "user.*"}}}, 2},
        {"one each", {{"b", {"user.created"}}, {"c", {"user.*"}}}, 2},
        {"one has both", {{"b", {"user.created"}}, {"c", {"user.created", "user.*"}}}, 2},
        {"the emitter has one", {{"a", {"user.*"}}, {"b", {"user.created", "user.*"}}}, 2},
        {"three", {{"b", {"**", "user.*"}}, {"c", {"user.created", "user.*", "**"}}, {"d", {"**"}}}, 3},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      SimMesh mesh;
      Seen seen;
      for (const char* id : {"a", "b", "c", "d"}) {
        Broker& broker = mesh.add(id);
        const auto patterns = row.patterns.find(id);
        if (patterns != row.patterns.end()) broker.add_service(seen.subscriber("mail", patterns->second));
      }
      mesh.start();
      seen.lines.clear();
      for (int i = 0; i < 10; ++i) mesh["a"].emit("user.created");
      mesh.run_for(100ms);
      std::map<std::string, int> by_pattern;
      for (const std::string& line : seen.lines) ++by_pattern[line.substr(line.rfind(' ') + 1)];
      CHECK(by_pattern.size() == static_cast<std::size_t>(row.runs));
      for (const auto& entry : by_pattern) {
        const std::string& pattern = entry.first;
        const int count = entry.second;
        CAPTURE(pattern);
        CHECK(count == 10);
      }
    }
  }

  TEST_CASE("a remote node gets one packet for all its groups") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.announce(1, arr(test::service_info("mail", {}, {"user.*", "user.created"}),
                         test::service_info("audit", {}, {"user.created"})));
    REQUIRE(mesh.until([&] { return mesh.sees("a", "p"); }));
    a.emit("user.created", {{"id", 5}});
    mesh.run_for(20ms);
    CHECK(peer.count(PacketType::kEvent) == 1);
    const Value emitted = peer.last(PacketType::kEvent);
    std::set<std::string> groups;
    for (const Value& group : emitted["groups"].items()) groups.insert(std::string(group.str()));
    CHECK(groups == std::set<std::string>{"audit", "mail"});
    CHECK(emitted["broadcast"] == Value(false));
    a.broadcast("user.created");
    mesh.run_for(20ms);
    CHECK(peer.count(PacketType::kEvent) == 2);
    const Value broadcast = peer.last(PacketType::kEvent);
    CHECK(broadcast["broadcast"] == Value(true));
    CHECK_FALSE(broadcast.contains("groups"));
    CHECK(broadcast.contains("data"));
    CHECK(broadcast["data"].is_null());
  }

  TEST_CASE("what a foreign node sends reaches the groups it names, in whatever form") {
    SimMesh mesh;
    Seen seen;
    Broker& b = mesh.add("b");
    b.add_service(seen.subscriber("mail", {"user.*"}));
    b.add_service(seen.subscriber("audit", {"user.created"}));
    ScriptedNode peer(mesh, "p");
    mesh.start();
    struct Row {
      Value groups;
      Lines runs;
    };
    const Lines all = {"b audit user.created", "b mail user.*"};
    const Row rows[] = {{Value(), all},
                        {Value::array(), all},
                        {arr("mail"), {"b mail user.*"}},
                        {arr("mail", "audit", "mail"), all},
                        {arr("nobody"), {}},
                        {arr(5, nullptr), all},
                        {Value("mail"), all},
                        {Value{{"a", 1}}, all}};
    for (const Row& row : rows) {
      for (const bool broadcast : {false, true}) {
        CAPTURE(to_json(row.groups));
        peer.send(
            PacketType::kEvent,
            Value{{"id", "1"}, {"event", "user.created"}, {"groups", row.groups}, {"broadcast", broadcast}},
            "b");
        mesh.run_for(20ms);
        CHECK(seen.take() == row.runs);
      }
    }
    peer.send(PacketType::kEvent, Value{{"event", "user.created"}}, "b");
    mesh.run_for(20ms);
    CHECK(seen.take() == all);
  }

  TEST_CASE("sharded events go where calls with that key go") {
    SimMesh mesh;
    const BrokerOptions sharded{.registry = {.strategy = "Shard",
                                             .strategy_options = {{"shardKey", "userID"}},
                                             .prefer_local = false}};
    std::map<std::string, std::set<std::string>> event_nodes;
    for (const char* id : {"node-1", "node-2", "node-3"}) {
      mesh.add(id, sharded).add_service(make_service("s", [&](Service& s) {
        s.event("seen", [&](Context& c) {
          event_nodes[std::string(c.params.value()["userID"].str())].insert(c.broker().node_id());
        });
        s.action("where", [](Context& c) { return c.broker().node_id(); });
      }));
    }
    mesh.add("client", sharded);
    mesh.start();
    const std::map<std::string, std::string> expected = {
        {"u1", "node-3"}, {"u2", "node-2"},    {"u3", "node-1"},  {"u4", "node-3"}, {"u5", "node-1"},
        {"42", "node-1"}, {"alice", "node-3"}, {"bob", "node-1"}, {"ünï", "node-3"}};
    for (const char* from : {"client", "node-2"}) {
      event_nodes.clear();
      for (const auto& entry : expected) {
        const std::string& key = entry.first;
        const std::string& node = entry.second;
        CAPTURE(key);
        const Value params{{"userID", key}};
        for (int i = 0; i < 20; ++i) mesh[from].emit("seen", params);
        CHECK(mesh.await(mesh[from].call<std::string>("s.where", params)) == node);
        CHECK(event_nodes[key] == std::set<std::string>{node});
      }
    }
    // Without a key any node may be chosen.
    std::set<std::string> taken;
    for (int i = 0; i < 60; ++i) taken.insert(mesh.await(mesh["client"].call<std::string>("s.where")));
    CHECK(taken.size() == 3);
  }

  TEST_CASE("each action and each event group has a rotation of its own") {
    SimMesh mesh;
    Seen seen;
    std::map<std::string, int> runs;
    for (const char* id : {"b", "c"}) {
      mesh.add(id).add_service(make_service("s", [&](Service& s) {
        for (const char* name : {"x", "y"}) {
          s.action(name, [&runs, name](Context& c) { ++runs[name + (" " + c.broker().node_id())]; });
          s.event(name, [&runs, name](Context& c) {
            ++runs[std::string("event ") + name + " " + c.broker().node_id()];
          });
        }
      }));
    }
    Broker& a = mesh.add("a");
    mesh.start();
    for (int i = 0; i < 100; ++i) {
      for (const char* name : {"x", "y"}) {
        mesh.await(a.call<void>(std::string("s.") + name));
        a.emit(name);
      }
    }
    mesh.run_for(50ms);
    CHECK(runs.size() == 8);
    for (const auto& entry : runs) {
      const auto& what = entry.first;
      const int count = entry.second;
      CAPTURE(what);
      CHECK(count == 50);
    }
  }

  TEST_CASE("a handler is told by whom, how and on whose behalf an event was sent") {
    SimMesh mesh;
    std::map<std::string, Value> got;
    const auto listener = [&] {
      return make_service("listener", [&](Service& s) {
        s.event("plain", [&](Context& c) { got[c.broker().node_id()] = context_of(c); });
        s.event("later", [&](Context& c) -> Task<void> {
          co_await c.broker().sleep(5ms);
          got[c.broker().node_id()] = context_of(c);
        });
      });
    };
    Broker& a = mesh.add("a", {.registry = {.prefer_local = false}});
    a.add_service(make_service("source", [](Service& s) {
      s.action("send", [](Context& c) {
        const std::string event(c.params.value()["event"].str());
        const Value meta{{"over", 1}};
        const Value headers{{"h", 1}};
        const std::string_view groups[] = {"listener"};
        const std::string_view how = c.params.value()["how"].str();
        if (how == "emit") c.emit(event, {{"n", 1}}, {.groups = groups, .meta = &meta, .headers = &headers});
        if (how == "broadcast") c.broadcast(event, {{"n", 1}}, {.meta = &meta, .headers = &headers});
        return c.id();
      });
    }));
    a.add_service(listener());
    mesh.add("b").add_service(listener());
    mesh.start();
    for (const char* event : {"plain", "later"}) {
      for (const char* how : {"broadcast", "emit", "emit"}) {
        CAPTURE(event);
        CAPTURE(how);
        got.clear();
        const Value meta{{"user", 7}};
        const std::string parent = mesh.await(a.call<std::string>(
            "source.send", {{"event", event}, {"how", how}}, {.meta = &meta, .request_id = "r"}));
        mesh.run_for(50ms);
        const bool is_emit = std::string_view(how) == "emit";
        CHECK(got.size() == (is_emit ? 1 : 2));
        for (const auto& heard : got) {
          const auto& node = heard.first;
          const Value& context = heard.second;
          CAPTURE(node);
          CHECK(context["event"].str() == event);
          CHECK(context["type"].str() == (is_emit ? "emit" : node == "a" ? "broadcastLocal" : "broadcast"));
          CHECK(to_json(context["groups"]) == (is_emit ? R"(["listener"])" : "[]"));
          CHECK(context["nodeID"].str() == "a");
          CHECK(context["level"].i64() == 2);
          CHECK(context["caller"].str() == "source");
          CHECK(context["requestID"].str() == "r");
          CHECK(context["parentID"].str() == parent);
          CHECK(context["id"].str().size() == 36);
          CHECK(to_json(context["meta"]) == R"({"user":7,"over":1})");
          CHECK(to_json(context["headers"]) == R"({"h":1})");
          CHECK(to_json(context["params"]) == R"({"n":1})");
        }
      }
    }
    got.clear();
    mesh["b"].emit("plain", "text");
    mesh.run_for(20ms);
    const Value& root = got.begin()->second;
    CHECK(root["level"].i64() == 1);
    CHECK(root["caller"].str() == "");
    CHECK(root["parentID"].str() == "");
    CHECK(root["params"].str() == "text");
  }

  TEST_CASE("an event without a payload has null for one") {
    SimMesh mesh;
    std::vector<std::string> got;
    for (const char* id : {"a", "b"}) {
      mesh.add(id).add_service(make_service("s", [&](Service& s) {
        s.event("e", [&](Context& c) { got.push_back(to_json(c.params.value())); });
      }));
    }
    mesh.start();
    mesh["a"].broadcast("e");
    mesh.run_for(20ms);
    CHECK(got == Lines{"null", "null"});
  }

  TEST_CASE("a handler that fails keeps nobody else from the event") {
    SimMesh mesh;
    Seen seen;
    for (const char* id : {"a", "b"}) {
      Broker& broker = mesh.add(id);
      broker.add_service(make_service("bad", [](Service& s) {
        s.event("e", [](Context&) { throw std::runtime_error("no"); });
        s.event("e*", [](Context& c) -> Task<void> {
          co_await c.broker().sleep(1ms);
          throw 5;
        });
      }));
      broker.add_service(seen.subscriber("good", {"e"}));
    }
    mesh.start();
    mesh["a"].broadcast("e");
    mesh.run_for(50ms);
    CHECK(seen.take() == Lines{"a good e", "b good e"});
    mesh["b"].emit("e");
    mesh.run_for(50ms);
    CHECK(seen.take() == Lines{"b good e"});
  }

  TEST_CASE("both versions of a service on one node get a broadcast, and an emit goes to one of them") {
    SimMesh mesh;
    Seen seen;
    Broker& b = mesh.add("b");
    for (const int version : {1, 2}) {
      auto users = seen.subscriber("users", {"user.created"});
      users->version(version);
      b.add_service(users);
    }
    Broker& a = mesh.add("a");
    mesh.start();
    a.broadcast("user.created");
    mesh.run_for(20ms);
    CHECK(seen.take() == Lines{"b v1.users user.created", "b v2.users user.created"});
    for (int i = 0; i < 4; ++i) {
      a.emit("user.created");
      mesh.run_for(20ms);
    }
    CHECK(seen.take() == Lines{"b v1.users user.created", "b v1.users user.created",
                               "b v2.users user.created", "b v2.users user.created"});
  }

  TEST_CASE("an event whose name begins with $ is told on the node itself, and to other nodes like any") {
    SimMesh mesh;
    Seen seen;
    Lines heard;
    Broker& a = mesh.add("a");
    mesh.add("b").add_service(seen.subscriber("s", {"$my.*"}));
    const auto listener = a.on_local("$my.*", [&](std::string_view event, const Value& payload) {
      heard.push_back(std::string(event) + to_json(payload));
    });
    mesh.start();
    a.emit("$my.event", {{"x", 1}});
    mesh.run_for(20ms);
    CHECK(heard == Lines{R"($my.event{"x":1})"});
    CHECK(seen.take() == Lines{"b s $my.*"});
  }

  TEST_CASE("a handler may remove its own service while the event is told") {
    SimMesh mesh;
    Seen seen;
    Broker& a = mesh.add("a");
    a.add_service(make_service("gone", [](Service& s) {
      s.event("e", [](Context& c) {
        c.broker().spawn([&broker = c.broker()] { return broker.destroy_service("gone"); });
      });
    }));
    a.add_service(seen.subscriber("stays", {"e"}));
    mesh.start();
    a.broadcast("e");
    mesh.run_for(20ms);
    CHECK(seen.take() == Lines{"a stays e"});
    CHECK(a.local_service("gone") == nullptr);
    a.broadcast("e");
    CHECK(seen.take() == Lines{"a stays e"});
  }
}

}  // namespace weft
