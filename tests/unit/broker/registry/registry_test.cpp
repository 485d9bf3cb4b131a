#include "broker/registry/registry.h"

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "broker/dispatch/local_action.h"
#include "broker/services/service_host.h"

namespace weft {

namespace {

using Names = std::vector<std::string>;

// A registry with its surroundings; other nodes come by INFO, local services as the service host brings them.
struct Setup {
  explicit Setup(RegistryConfig config = {})
      : registry(nodes, std::move(config), strategies, random, Logger()) {}

  Node& info(const std::string& id, Value services, int seq = 1) {
    Value body{{"seq", seq}, {"instanceID", "i-" + id}, {"services", std::move(services)}};
    const InfoOutcome outcome = nodes.apply_info(id, body, Instant(std::chrono::seconds(5)));
    if (outcome.services_changed) registry.register_remote(*outcome.node);
    return *outcome.node;
  }
  void add_local(const std::shared_ptr<Service>& service) {
    definitions.push_back(describe_service(*service));
    const Value& definition = definitions.back();
    Registry::LocalServiceParts parts;
    parts.full_name = service->full_name();
    parts.definition = &definition;
    for (const auto& spec : service->action_specs()) {
      const std::string name = full_action_name(*service, spec.name);
      parts.actions.emplace_back(name,
                                 std::make_shared<LocalAction>(name, service, spec.handler, spec.options));
    }
    for (const auto& spec : service->event_specs()) {
      const std::string group = spec.options.group.empty() ? service->name() : spec.options.group;
      parts.subscriptions.push_back(
          std::make_shared<LocalSubscription>(spec.pattern, group, service, spec.handler));
      parts.patterns_and_groups.emplace_back(spec.pattern, group);
      parts.subscription_definitions.push_back(&definition["events"][spec.pattern]);
    }
    registry.register_local(parts);
  }

  // The nodes that offer `action`, in order.
  Names offering(std::string_view action) {
    Names ids;
    const ActionList* list = registry.find_action(action);
    if (list == nullptr) return {"unknown"};
    for (const auto& endpoint : list->endpoints) ids.push_back(endpoint->node->id);
    return ids;
  }
  Names picks(std::string_view action, int count) {
    Names ids;
    for (int i = 0; i < count; ++i) {
      const auto picked = registry.pick(*registry.find_action(action), {none, none});
      ids.push_back(picked ? (*picked)->node->id : std::string(picked.error().type()));
    }
    return ids;
  }
  // "group pattern" of the lists that match.
  Names matching(std::string_view event) {
    Names lists;
    for (const EventList* list : registry.match_event(event))
      lists.push_back(list->group + " " + list->pattern);
    return lists;
  }

  StrategyTable strategies;
  SeededRandom random{1};
  NodeCatalog nodes{"self", "i-self"};
  Registry registry;
  std::deque<Value> definitions;
  Payload none;
};

Value service(std::string_view name, const Names& actions, const Names& events = {}) {
  Value action_map = Value::object();
  for (const std::string& action : actions) {
    const std::string full = std::string(name) + "." + action;
    action_map.set(full, Value{{"name", full}, {"rawName", action}});
  }
  Value event_map = Value::object();
  for (const std::string& event : events) event_map.set(event, Value{{"name", event}});
  return Value{{"name", name}, {"actions", action_map}, {"events", event_map}};
}

std::shared_ptr<Service> local(std::string name, const Names& actions, const Names& events = {}) {
  auto made = std::make_shared<Service>(std::move(name));
  for (const std::string& action : actions) made->action(action, [](Context&) { return 1; });
  for (const std::string& event : events) made->event(event, [](Context&) {});
  return made;
}

}  // namespace

TEST_SUITE("registry") {
  TEST_CASE("a new list replaces the old one whole: what is gone goes, what stays keeps its place") {
    Setup s;
    s.info("a", arr(service("x", {"one", "two"}, {"e"})));
    s.info("b", arr(service("x", {"one", "two"}, {"e"})));
    s.info("a", arr(service("x", {"one", "three"}, {"f"})), 2);
    CHECK(s.offering("x.one") == Names{"a", "b"});
    CHECK(s.offering("x.two") == Names{"b"});
    CHECK(s.offering("x.three") == Names{"a"});
    CHECK(s.registry.match_event("e").front()->endpoints.size() == 1);
    CHECK(s.matching("f") == Names{"x f"});
    // What comes back stands last.
    s.info("a", arr(service("x", {"two"})), 3);
    CHECK(s.offering("x.two") == Names{"b", "a"});
  }

  TEST_CASE("a node that leaves takes everything along; its actions are known, but not available") {
    Setup s;
    Node& a = s.info("a", arr(service("x", {"one"}, {"e"})));
    s.registry.unregister_node(a);
    CHECK(s.offering("x.one").empty());
    CHECK(s.picks("x.one", 1) == Names{"SERVICE_NOT_AVAILABLE"});
    CHECK(s.matching("e").empty());
    CHECK(s.registry.services().empty());
    CHECK_FALSE(s.registry.has_service("x"));
    CHECK(s.registry.find_action("x.two") == nullptr);
    CHECK(s.registry.pick_on("x.one", "a").error().type() == "SERVICE_NOT_FOUND");
    CHECK(s.registry.pick_on("x.two", "a").error().data()["nodeID"].str() == "a");
  }

  TEST_CASE("missing and null fields of an advert mean empty, and the full name follows from the version") {
    Setup s;
    s.info("a", arr(Value{{"name", "n"}, {"version", 2}, {"settings", nullptr}, {"actions", nullptr}},
                    Value{{"name", "t"}, {"version", "staging"}, {"fullName", nullptr}, {"events", arr()}},
                    Value{{"name", "z"}, {"version", 0}}, Value{{"name", "plain"}, {"metadata", nullptr}},
                    Value{{"name", "bare"}, {"version", 3}, {"settings", {{"$noVersionPrefix", true}}}},
                    Value{{"name", "said"}, {"version", 9}, {"fullName", "other"}}, Value{{"version", 1}}, 17,
                    nullptr));
    Names names;
    for (const auto& entry : s.registry.services()) names.push_back(entry->full_name);
    CHECK(names == Names{"v2.n", "staging.t", "v0.z", "plain", "bare", "other"});
    CHECK(s.registry.has_service("v2.n"));
    CHECK_FALSE(s.registry.has_service("n"));
  }

  TEST_CASE("actions may come as an array, under their names") {
    Setup s;
    s.info("a", arr(Value{{"name", "x"},
                          {"actions", arr(Value{{"name", "x.one"}}, Value{{"rawName", "no"}}, 5)}}));
    CHECK(s.offering("x.one") == Names{"a"});
    CHECK(s.registry.actions().size() == 1);
  }

  TEST_CASE("what a peer calls protected or private is not for us, whatever it announces") {
    Setup s;
    Value x = service("x", {"open", "guarded", "hidden", "public"});
    x["actions"]["x.guarded"].set("visibility", "protected");
    x["actions"]["x.hidden"].set("visibility", "private");
    x["actions"]["x.public"].set("visibility", "public");
    s.info("a", arr(x));
    CHECK(s.offering("x.open") == Names{"a"});
    CHECK(s.offering("x.public") == Names{"a"});
    CHECK(s.registry.find_action("x.guarded") == nullptr);
    CHECK(s.registry.find_action("x.hidden") == nullptr);
    // Of an action that becomes protected the endpoint goes.
    x["actions"]["x.open"].set("visibility", "protected");
    s.info("a", arr(x), 2);
    CHECK(s.offering("x.open").empty());
  }

  TEST_CASE("what a peer announces beyond the limits is left out") {
    Setup s({.services_per_node_max = 2, .actions_per_service_max = 3});
    s.info("a", arr(service("x", {"1", "2", "3", "4"}, {"e"}), service("y", {"1"}, {"e1", "e2", "e3"}),
                    service("z", {"1"})));
    CHECK(s.offering("x.3") == Names{"a"});
    CHECK(s.registry.find_action("x.4") == nullptr);
    CHECK(s.matching("e").empty());
    CHECK(s.matching("e2") == Names{"y e2"});
    CHECK(s.matching("e3").empty());
    CHECK(s.registry.find_action("z.1") == nullptr);
    CHECK(s.registry.services().size() == 2);
  }

  TEST_CASE("names without measure are left out, and the first one is told of") {
    Setup s;
    const std::string long_name(300, 'n');
    const InfoOutcome outcome = s.nodes.apply_info(
        "a",
        Value{{"seq", 1},
              {"services",
               arr(service(long_name, {"1"}), service("x", {long_name, "good"}, {long_name, "e"}))}},
        Instant(std::chrono::seconds(5)));
    const std::string complaint = s.registry.register_remote(*outcome.node);
    CHECK(complaint.find("300 bytes, allowed are 256") != std::string::npos);
    CHECK(complaint.find("2 more") != std::string::npos);
    CHECK(complaint.size() < 200);
    CHECK(s.registry.services().size() == 1);
    CHECK(s.offering("x.good") == Names{"a"});
    CHECK(s.matching("e") == Names{"x e"});
    CHECK(s.registry.events().size() == 1);
  }

  TEST_CASE("an event of another node meets this node's own patterns alone") {
    Setup s;
    const auto local = [&](std::string_view event) {
      Names lists;
      for (const EventList* list : s.registry.match_local(event))
        lists.push_back(list->group + " " + list->pattern);
      return lists;
    };
    s.info("a", arr(service("x", {}, {"user.*", "**"})));
    CHECK(local("user.made").empty());
    auto own = std::make_shared<Service>("x");
    own->event("user.*", [](Context&) {});
    s.add_local(own);  // To a list that was there, and cached as nobody's.
    CHECK(local("user.made") == Names{"x user.*"});
    CHECK(s.matching("user.made").size() == 2);
    s.registry.unregister_local("x");
    CHECK(local("user.made").empty());
  }

  TEST_CASE("a list of services is the union over nodes, whatever the order they were learnt in") {
    Setup s;
    s.info("z", arr(service("posts", {"list"})));
    s.info("n", arr(service("posts", {"list", "create"})));
    CHECK(s.offering("posts.list") == Names{"z", "n"});
    CHECK(s.offering("posts.create") == Names{"n"});
    CHECK(s.registry.services().size() == 2);
  }

  TEST_CASE("names of actions that nobody offers any more do not pile up") {
    Setup s;
    for (int round = 0; round < 7; ++round) {
      Names actions;
      for (int i = 0; i < 3000; ++i) actions.push_back(std::to_string(round) + "-" + std::to_string(i));
      s.info("a", arr(service("x", actions)), round + 1);
    }
    CHECK(s.registry.actions().size() < 15'000);
    CHECK(s.offering("x.6-2999") == Names{"a"});
    CHECK(s.picks("x.6-0", 1) == Names{"a"});
  }

  TEST_CASE("each action has a rotation of its own, in order of registration") {
    Setup s;
    for (const char* id : {"c", "a", "b"}) s.info(id, arr(service("x", {"one", "two"})));
    CHECK(s.picks("x.one", 4) == Names{"c", "a", "b", "c"});
    CHECK(s.picks("x.two", 2) == Names{"c", "a"});
    CHECK(s.picks("x.one", 1) == Names{"a"});
  }

  TEST_CASE("a local action is preferred, or takes its turn, and internal ones are always local") {
    for (const bool prefer : {true, false}) {
      CAPTURE(prefer);
      Setup s({.prefer_local = prefer});
      s.info("a", arr(service("x", {"one"}), service("$node", {"list"})));
      s.add_local(local("x", {"one"}));
      s.add_local(local("$node", {"list"}));
      CHECK(s.picks("x.one", 2) == (prefer ? Names{"self", "self"} : Names{"a", "self"}));
      CHECK(s.picks("$node.list", 2) == Names{"self", "self"});
      CHECK((*s.registry.pick_on("$node.list", "a"))->node->id == "a");
    }
  }

  TEST_CASE("a removed local service leaves nothing behind, and may come back") {
    Setup s;
    // A long name does not fit into the string itself: whoever looks at it after its end is found out.
    const std::string name = "a-service-with-a-name-that-lies-on-the-heap";
    s.add_local(local(name, {"one", "two"}, {"e"}));
    s.info("a", arr(service(name, {"one"}, {"e"})));
    s.registry.unregister_local(name);
    CHECK(s.offering(name + ".one") == Names{"a"});
    CHECK(s.offering(name + ".two").empty());
    CHECK(s.registry.find_action(name + ".one")->local == nullptr);
    CHECK(s.registry.match_event("e").front()->endpoints.size() == 1);
    CHECK(s.registry.services().size() == 1);
    s.add_local(local(name, {"one"}, {"e"}));
    CHECK(s.offering(name + ".one") == Names{"a", "self"});
    CHECK(s.registry.find_action(name + ".one")->local != nullptr);
  }

  TEST_CASE("two versions of a service in one group are two receivers of a broadcast and one of an emit") {
    Setup s;
    auto v1 = local("users", {}, {"user.created"});
    v1->version(1);
    auto v2 = local("users", {}, {"user.created"});
    v2->version(2);
    s.add_local(v1);
    s.add_local(v2);
    Value remote = service("users", {}, {"user.created"});
    Value other = remote;
    remote.set("version", 1);
    other.set("version", 2);
    s.info("a", arr(remote, other));
    CHECK(s.matching("user.created") == Names{"users user.created"});
    EventList& list = *s.registry.match_event("user.created").front();
    CHECK(list.endpoints.size() == 4);
    // Emitted, it goes to the versions here in turn.
    Names taken;
    for (int i = 0; i < 4; ++i) taken.push_back(s.registry.pick_event(list, {s.none, s.none})->service);
    CHECK(taken == Names{"v1.users", "v2.users", "v1.users", "v2.users"});
    s.registry.unregister_local("v1.users");
    CHECK(list.endpoints.size() == 3);
    CHECK(s.registry.pick_event(list, {s.none, s.none})->service == "v2.users");
  }

  TEST_CASE("events match by pattern, once for each pattern and group; names that come by do not pile up") {
    Setup s;
    s.add_local(local("mail", {}, {"user.*", "user.created", "**"}));
    s.info("a", arr(service("audit", {}, {"user.*"})));
    CHECK(s.matching("user.created") == Names{"mail user.*", "mail user.created", "mail **", "audit user.*"});
    CHECK(s.matching("user.x.y") == Names{"mail **"});
    for (int i = 0; i < 20'000; ++i) (void)s.registry.match_event("other." + std::to_string(i));
    CHECK(s.matching("user.created").size() == 4);
    // A pattern that comes or goes shows at once in what was looked up before.
    s.info("b", arr(service("late", {}, {"user.created"})));
    CHECK(s.matching("user.created").size() == 5);
    s.registry.unregister_node(*s.nodes.find("b"));
    CHECK(s.matching("user.created").size() == 4);
    s.registry.unregister_local("mail");
    CHECK(s.matching("user.created") == Names{"audit user.*"});
  }

  TEST_CASE("the first definition seen gives an action its timeout, idempotence and strategy") {
    Setup s;
    Value first = service("x", {"one"});
    first["actions"]["x.one"].set("timeout", 250);
    first["actions"]["x.one"].set("idempotent", true);
    first["actions"]["x.one"].set("strategy", "Shard");
    first["actions"]["x.one"].set("strategyOptions", Value{{"shardKey", "id"}});
    s.info("a", arr(first));
    s.info("b", arr(service("x", {"one"})));
    ActionList* list = s.registry.find_action("x.one");
    CHECK(list->timeout == std::chrono::milliseconds(250));
    CHECK(list->idempotent);
    const Payload params(Value{{"id", "u1"}});
    std::set<std::string> taken;
    for (int i = 0; i < 10; ++i) taken.insert((*s.registry.pick(*list, {params, s.none}))->node->id);
    CHECK(taken.size() == 1);
    // When that node is gone, the next one's counts.
    s.registry.unregister_node(*s.nodes.find("a"));
    CHECK(list->timeout < Duration::zero());
    CHECK_FALSE(list->idempotent);
    // And an unknown strategy of a peer is no reason to lose the action.
    Value odd = service("y", {"one"});
    odd["actions"]["y.one"].set("strategy", "NoSuchThing");
    s.info("c", arr(odd));
    CHECK(s.picks("y.one", 1) == Names{"c"});
  }

  TEST_CASE("an action's strategy may be one that only weft has, by weft's name for it") {
    Setup s;
    Value x = service("x", {"one"});
    x["actions"]["x.one"].set("weftStrategy", "Rendezvous");
    x["actions"]["x.one"].set("weftStrategyOptions", Value{{"shardKey", "id"}});
    for (const char* id : {"a", "b", "c"}) s.info(id, arr(x));
    const Payload params(Value{{"id", "u1"}});
    std::set<std::string> taken;
    for (int i = 0; i < 10; ++i)
      taken.insert((*s.registry.pick(*s.registry.find_action("x.one"), {params, s.none}))->node->id);
    CHECK(taken.size() == 1);
  }

  TEST_CASE("calls under way are counted for the list, and forgotten with an endpoint that goes") {
    Setup s;
    for (const char* id : {"a", "b"}) s.info(id, arr(service("x", {"one"})));
    ActionList& list = *s.registry.find_action("x.one");
    Flight of_a, of_b;
    of_a.begin(*list.endpoints[0], Instant{});
    of_b.begin(*list.endpoints[1], Instant{});
    CHECK(list.group.in_flight == 2);
    s.info("a", arr(), 2);
    CHECK(list.group.in_flight == 1);
    CHECK(of_a.endpoint() == nullptr);
    land(of_b, Ending::kAnswered, Instant{});
    CHECK(list.group.in_flight == 0);
  }

  TEST_CASE("an action that comes back after all its nodes had gone may have another strategy") {
    Setup s;
    s.info("a", arr(service("x", {"one"})));
    s.info("a", arr(), 2);
    Value sharded = service("x", {"one"});
    sharded["actions"]["x.one"].set("strategy", "Shard");
    sharded["actions"]["x.one"].set("strategyOptions", Value{{"shardKey", "id"}});
    for (const char* id : {"a", "b", "c"}) s.info(id, arr(sharded), 3);
    const Payload params(Value{{"id", "u1"}});
    std::set<std::string> taken;
    for (int i = 0; i < 10; ++i)
      taken.insert((*s.registry.pick(*s.registry.find_action("x.one"), {params, s.none}))->node->id);
    CHECK(taken.size() == 1);
  }

  TEST_CASE("choosing among a part of a sharded list leaves the ring of the whole as it is") {
    Setup s({.strategy = "Shard", .strategy_options = {{"shardKey", "id"}}, .prefer_local = false});
    for (const char* id : {"node-1", "node-2", "node-3"}) s.info(id, arr(service("x", {}, {"e"})));
    EventList& list = *s.registry.match_event("e").front();
    const auto node_of = [&](const char* key) {
      const Payload data(Value{{"id", key}});
      return s.registry.pick_event(list, {data, s.none})->node->id;
    };
    const std::vector<const Endpoint*> part = {list.available[0], list.available[1]};
    const Payload data(Value{{"id", "u1"}});
    CHECK(s.registry.pick_event_among(list, part, {data, s.none})->node->id == "node-2");
    CHECK(node_of("u1") == "node-3");
    CHECK(s.registry.pick_event_among(list, part, {data, s.none})->node->id == "node-2");
    CHECK(node_of("u1") == "node-3");
    CHECK(node_of("u3") == "node-1");
  }

  TEST_CASE("a strategy that throws fails the call; one that chooses nothing makes it unavailable") {
    class Odd final : public Strategy {
     public:
      explicit Odd(bool throws) : throws_(throws) {}
      const Endpoint* select(std::span<const Endpoint* const>, const Selection&) override {
        if (throws_) throw std::runtime_error("out of order");
        return nullptr;
      }

     private:
      bool throws_;
    };
    for (const bool throws : {true, false}) {
      Setup s;
      s.strategies.add("Odd", [throws](const StrategyContext&) { return std::make_unique<Odd>(throws); });
      Value x = service("x", {"one"}, {"e"});
      x["actions"]["x.one"].set("strategy", "Odd");
      x["events"]["e"].set("strategy", "Odd");
      s.info("a", arr(x));
      s.info("b", arr(x));
      const auto picked = s.registry.pick(*s.registry.find_action("x.one"), {s.none, s.none});
      REQUIRE_FALSE(picked.ok());
      CHECK(picked.error().message() == (throws ? "out of order" : "Service 'x.one' is not available."));
      CHECK(s.registry.pick_event(*s.registry.match_event("e").front(), {s.none, s.none}) == nullptr);
    }
  }
}

TEST_SUITE("node catalog") {
  TEST_CASE("what nodes say of themselves fits the memory for it, or is left out") {
    NodeCatalog nodes("self", "i");
    nodes.set_info_bytes_max(160'000);
    int seconds = 10;
    const auto announce = [&](const std::string& id, std::size_t bytes, int seq = 1) {
      const Value body{{"seq", seq},
                       {"instanceID", "i"},
                       {"metadata", Value{{"text", std::string(bytes / 2, 'm')}}},
                       {"services", arr(Value{{"name", std::string(bytes / 2, 's')}})}};
      return nodes.apply_info(id, body, Instant(std::chrono::seconds(++seconds)));
    };
    // One node has at most a sixteenth.
    const InfoOutcome large = announce("large", 20'000);
    CHECK(large.left_out);
    CHECK(large.node->available);
    CHECK(large.node->services.empty());
    CHECK(nodes.info_bytes() == 0);
    CHECK_FALSE(announce("large", 5'000, 2).left_out);
    CHECK(large.node->services.size() == 1);

    std::vector<std::string> taken;
    for (int i = 0; i < 40; ++i) {
      const std::string id = "n" + std::to_string(i);
      if (!announce(id, 8'000).left_out) taken.push_back(id);
      CHECK(nodes.info_bytes() <= 160'000);
    }
    CHECK(taken.size() >= 15);
    CHECK(taken.size() < 25);
    // The same again takes no more.
    const std::size_t bytes = nodes.info_bytes();
    CHECK_FALSE(announce(taken.front(), 8'000, 2).left_out);
    CHECK(nodes.info_bytes() == bytes);
    // Those who left make room, but not in the same breath.
    nodes.mark_offline(*nodes.find(taken.front()), Instant(std::chrono::seconds(seconds + 1)));
    CHECK(announce("newcomer", 8'000).left_out);
    CHECK_FALSE(nodes.find(taken.front())->services.empty());
    ++seconds;
    CHECK_FALSE(announce("newcomer", 8'000, 2).left_out);
    CHECK(nodes.find(taken.front())->services.empty());
    nodes.mark_offline(*nodes.find("newcomer"), Instant(std::chrono::seconds(seconds)));
    nodes.forget("newcomer");
    CHECK(nodes.info_bytes() < bytes);
  }

  TEST_CASE("a returning node's list counts whole, and its number is taken even when it is lower") {
    Setup s;
    Node& a = s.info("a", arr(service("x", {"one"})), 5);
    CHECK(s.nodes.mark_offline(a, Instant(std::chrono::seconds(6))));
    s.registry.unregister_node(a);
    CHECK(a.seq == 6);
    s.info("a", arr(service("x", {"one", "two"})), 5);
    CHECK(a.available);
    CHECK(a.seq == 5);
    CHECK(s.offering("x.two") == Names{"a"});
    s.info("a", arr(service("x", {"one", "two", "three"})), 6);
    CHECK(a.seq == 6);
    CHECK(s.offering("x.three") == Names{"a"});
    // An older or equal one of a node that is there changes nothing.
    s.info("a", arr(), 6);
    s.info("a", arr(), 2);
    CHECK(s.offering("x.three") == Names{"a"});
  }

  TEST_CASE("another instance of a node that is online is told from an update") {
    Setup s;
    s.info("a", arr(), 9);
    const auto apply = [&](const char* instance, int seq) {
      return s.nodes.apply_info("a", Value{{"seq", seq}, {"instanceID", instance}, {"services", arr()}},
                                Instant(std::chrono::seconds(6)));
    };
    CHECK_FALSE(apply("i-a", 10).restarted);
    const InfoOutcome outcome = apply("i-new", 1);
    CHECK(outcome.restarted);
    CHECK(outcome.services_changed);
    CHECK(s.nodes.find("a")->seq == 1);
    s.nodes.mark_offline(*s.nodes.find("a"), Instant(std::chrono::seconds(7)));
    CHECK_FALSE(apply("i-third", 1).restarted);  // Its end was noticed.
  }
}

}  // namespace weft
