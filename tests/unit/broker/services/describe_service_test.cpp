#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "broker/service.h"
#include "broker/services/service_host.h"
#include "lib/protocol/serializer.h"

namespace described {

struct Add {
  std::int64_t a = 0;
  std::optional<std::string> note;
};
WEFT_FIELDS(Add, a, note)

}  // namespace described

namespace weft {

using namespace std::chrono_literals;

TEST_SUITE("describe service") {
  TEST_CASE("names follow from name, version and prefix settings") {
    struct Row {
      const char* name;
      Value version;
      Value settings;
      const char* full_name;
      const char* action;
    };
    const Value none = Value::object();
    const Row rows[] = {
        {"p", {}, none, "p", "p.list"},
        {"p", 1, none, "v1.p", "v1.p.list"},
        {"p", "staging", none, "staging.p", "staging.p.list"},
        {"p", 0, none, "v0.p", "v0.p.list"},
        {"a.b.c", "v9", none, "v9.a.b.c", "v9.a.b.c.list"},
        {"p", 3, {{"$noVersionPrefix", true}}, "p", "p.list"},
        {"q", 5, {{"$noServiceNamePrefix", true}}, "v5.q", "list"},
        {"p", "", none, ".p", ".p.list"},
        {"p", 3, {{"$noVersionPrefix", false}}, "v3.p", "v3.p.list"},
    };
    for (const Row& row : rows) {
      for (const bool settings_first : {true, false}) {
        CAPTURE(row.full_name);
        Service service(row.name);
        if (settings_first) service.settings(row.settings);
        if (row.version.is_number()) service.version(static_cast<int>(row.version.i64()));
        if (row.version.is_string()) service.version(std::string(row.version.str()));
        if (!settings_first) service.settings(row.settings);
        service.action("list", [](Context&) {});
        CHECK(service.full_name() == row.full_name);
        const Value described = describe_service(service);
        CHECK(described["fullName"].str() == row.full_name);
        CHECK(described["name"].str() == row.name);
        CHECK(described.contains("version") == !row.version.is_null());
        CHECK(described["version"] == row.version);
        REQUIRE(described["actions"].size() == 1);
        const Member& action = described["actions"].members().front();
        CHECK(action.key == row.action);
        CHECK(action.value["name"].str() == row.action);
        CHECK(action.value["rawName"].str() == "list");
      }
    }
  }

  TEST_CASE("secure settings are left out, and so is the list of them") {
    struct Row {
      const char* secure;
      const char* settings;
      const char* published;
    };
    const Row rows[] = {
        {R"(["a.b","t"])", R"({"a":{"b":1,"c":2},"t":3})", R"({"a":{"c":2}})"},
        {R"([])", R"({"a":1})", R"({"a":1})"},
        {R"(["x","a.x.y","a.b.c"])", R"({"a":{"b":1}})", R"({"a":{"b":1}})"},
        {R"(["a"])", R"({"a":{"b":1},"$cache":true})", R"({"$cache":true})"},
    };
    for (const Row& row : rows) {
      Value settings = *parse_json(row.settings);
      settings.set("$secureSettings", *parse_json(row.secure));
      Service service("s");
      service.settings(settings);
      CHECK(to_json(describe_service(service)["settings"]) == row.published);
      CHECK(service.settings() == settings);  // The service itself sees all.
    }
  }

  TEST_CASE("a list of secure settings that is none is refused, for it would publish them") {
    for (const char* wrong : {R"("token")", R"({"token":true})", R"(["a",1])", "true"}) {
      Service service("s");
      CHECK_THROWS_AS(service.settings(Value{{"token", "x"}, {"$secureSettings", *parse_json(wrong)}}),
                      ServiceSchemaError);
    }
  }

  TEST_CASE("what is written about an action is published, and no more") {
    Service service("s");
    service.action("plain", [](Context&) {});
    service.action("add", [](Context&, const described::Add& p) { return p.a; });
    service.action("full", [](Context&) {},
                   {.timeout = 1500ms,
                    .idempotent = true,
                    .visibility = Visibility::kPublic,
                    .strategy = "Shard",
                    .strategy_options = Value{{"shardKey", "id"}},
                    .params = Value{{"id", "string"}},
                    .description = "Does it.",
                    .extra = Value{{"cache", true}, {"rest", "GET /"}}});
    service.action("guarded", [](Context&) {}, {.visibility = Visibility::kProtected});
    service.action("hidden", [](Context&) {}, {.visibility = Visibility::kPrivate});
    service.event("user.*", [](Context&) {});
    service.event("order.paid", [](Context&) {}, {.group = "payment", .strategy = "Random"});
    service.metadata(Value{{"owner", "me"}});
    const Value described = describe_service(service);
    CHECK(to_json(described["actions"]["s.plain"]) == R"({"rawName":"plain","name":"s.plain"})");
    CHECK(to_json(described["actions"]["s.full"]) ==
          R"({"cache":true,"rest":"GET /","params":{"id":"string"},"visibility":"public","timeout":1500,)"
          R"("idempotent":true,"strategy":"Shard","strategyOptions":{"shardKey":"id"},)"
          R"("description":"Does it.","rawName":"full","name":"s.full"})");
    CHECK(described["actions"]["s.guarded"]["visibility"].str() == "protected");
    CHECK_FALSE(described["actions"].contains("s.hidden"));
    const Value& rules = described["actions"]["s.add"]["params"];
    CHECK(rules.contains("a"));
    CHECK(rules.contains("note"));
    CHECK(
        to_json(described["events"]) ==
        R"({"user.*":{"name":"user.*"},"order.paid":{"name":"order.paid","group":"payment","strategy":"Random"}})");
    CHECK(to_json(described["metadata"]) == R"({"owner":"me"})");
    CHECK_FALSE(described.contains("dependencies"));
  }

  TEST_CASE("a strategy that Moleculer does not have is published under a name that its nodes pass over") {
    Service service("s");
    service.action("quick", [](Context&) {},
                   {.strategy = "PeakEwma", .strategy_options = Value{{"decay", 5}}});
    service.event("done", [](Context&) {}, {.strategy = "PreferZone"});
    const Value described = describe_service(service);
    CHECK(
        to_json(described["actions"]["s.quick"]) ==
        R"({"weftStrategy":"PeakEwma","weftStrategyOptions":{"decay":5},"rawName":"quick","name":"s.quick"})");
    CHECK(to_json(described["events"]["done"]) == R"({"name":"done","weftStrategy":"PreferZone"})");
  }
}

}  // namespace weft
