#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;

TEST_SUITE("calls") {
  TEST_CASE("a call carries level, caller, ids, meta and headers at every depth, and brings meta back") {
    for (const bool remote : {false, true}) {
      CAPTURE(remote);
      SimMesh mesh;
      Broker& a = mesh.add("a");
      Broker& b = remote ? mesh.add("b") : a;
      b.add_service(front());
      (remote ? mesh.add("c") : a).add_service(echo());
      mesh.start();
      const Value meta{{"user", 7}, {"lang", "de"}};
      const Value headers{{"x", 1}};
      Value meta_back;
      const Value top = mesh.await(a.call(
          "front.relay",
          {{"action", "echo.seen_later"}, {"params", {{"p", 1}}}, {"meta", {{"lang", "fr"}, {"more", true}}}},
          {.meta = &meta,
           .headers = &headers,
           .request_id = "req-1",
           .caller = "cli",
           .response_meta = &meta_back}));
      const Value& below = top["below"];
      CHECK(top["level"].i64() == 1);
      CHECK(top["caller"].str() == "cli");
      CHECK(top["requestID"].str() == "req-1");
      CHECK(top["parentID"].str() == "");
      CHECK(top["nodeID"].str() == "a");
      CHECK(to_json(top["headers"]) == R"({"x":1})");
      CHECK(to_json(top["meta"]) == R"({"user":7,"lang":"de"})");
      CHECK(below["level"].i64() == 2);
      CHECK(below["caller"].str() == "front");
      CHECK(below["requestID"].str() == "req-1");
      CHECK(below["parentID"] == top["id"]);
      CHECK(below["id"] != top["id"]);
      CHECK(below["nodeID"].str() == (remote ? "b" : "a"));
      CHECK(to_json(below["headers"]) == "{}");
      CHECK(to_json(below["meta"]) == R"({"user":7,"lang":"fr","more":true})");
      CHECK(to_json(top["meta_after"]) == R"({"user":7,"lang":"fr","more":true})");
      CHECK(to_json(meta_back) == R"({"user":7,"lang":"fr","more":true})");
      CHECK(to_json(meta) == R"({"user":7,"lang":"de"})");  // The caller's own object is left alone.
    }
  }

  TEST_CASE("a root call without a request id is its own request") {
    SimMesh mesh;
    mesh.add("a");
    mesh.add("b").add_service(echo());
    mesh.start();
    const Value here = mesh.await(mesh["b"].call("echo.seen"));
    const Value there = mesh.await(mesh["a"].call("echo.seen"));
    for (const Value& one : {here, there}) {
      CHECK(one["requestID"] == one["id"]);
      CHECK(one["id"].str().size() == 36);
      CHECK(one["level"].i64() == 1);
      CHECK(one["caller"].str() == "");
    }
  }

  TEST_CASE("meta comes up from calls that fail, too, and headers of the response arrive") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Broker& b = mesh.add("b");
    b.add_service(echo());
    b.add_service(make_service("h", [](Service& s) {
      s.action("headers", [](Context& c) { c.response_headers()["etag"] = "x"; });
    }));
    mesh.start();
    for (Broker* broker : {&a, &b}) {
      Value meta;
      const auto failed =
          mesh.await(broker->try_call("echo.set_meta_and_fail", {{"r", 1}}, {.response_meta = &meta}));
      CHECK(failed.error().code() == 409);
      CHECK(to_json(meta) == R"({"r":1})");
      Value headers;
      mesh.await(broker->call<void>("h.headers", {}, {.response_headers = &headers}));
      CHECK(to_json(headers) == R"({"etag":"x"})");
    }
  }

  TEST_CASE("the time-out of the call goes before the action's, and that before the broker's; 0 is none") {
    struct Row {
      const char* action;
      std::optional<Duration> timeout;
      int ms;  // 0: it waits.
    };
    const Row rows[] = {
        {"echo.sleep", std::nullopt, 500},
        {"echo.sleep200", std::nullopt, 200},
        {"echo.sleep200", 50ms, 50},
        {"echo.sleep", 50ms, 50},
        {"echo.sleep", 0ms, 0},
        {"echo.sleep200", 0ms, 0},
        {"echo.sleep200", 800ms, 800},
    };
    for (const bool remote : {false, true}) {
      SimMesh mesh;
      Broker& a = mesh.add("a", {.request_timeout = 500ms});
      (remote ? mesh.add("b") : a).add_service(echo());
      mesh.start();
      for (const Row& row : rows) {
        CAPTURE(remote);
        CAPTURE(row.action);
        CAPTURE(row.ms);
        CallOptions options;
        options.timeout = row.timeout;
        const Duration before = mesh.elapsed();
        const auto result = mesh.await(a.try_call(row.action, {{"ms", 10'000}}, options));
        const double took = to_ms(mesh.elapsed() - before);
        if (row.ms == 0) {
          CHECK(result.ok());
          CHECK(took >= 10'000);
          continue;
        }
        REQUIRE_FALSE(result.ok());
        CHECK(result.error().error_class() == ErrorClass::kRequestTimeout);
        CHECK(result.error().data()["action"].str() == row.action);
        CHECK(result.error().data()["nodeID"].str() == (remote ? "b" : "a"));
        CHECK(took >= row.ms);
        CHECK(took < row.ms + 15);
      }
    }
  }

  TEST_CASE("nested calls have what is left of the caller's time") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    mesh.add("b").add_service(front());
    mesh.add("c").add_service(echo());
    mesh.start();
    const auto relay = [&](const Value& params, Duration timeout) {
      return mesh.await(a.try_call("front.relay", params, {.timeout = timeout}));
    };
    // Of 300 ms 200 are gone.
    auto seen_below = relay(Value{{"first_ms", 200}, {"action", "echo.seen"}}, 300ms);
    REQUIRE(seen_below.ok());
    const Value below = (*seen_below)["below"];
    CHECK(below["remaining"].f64() <= 100);
    CHECK(below["remaining"].f64() > 80);
    // The nested call's own time-out counts when it is the smaller one.
    seen_below = relay(Value{{"action", "echo.seen"}, {"timeout", 50}}, 300ms);
    CHECK(std::as_const(*seen_below)["below"]["remaining"].f64() <= 50);
    seen_below = relay(Value{{"action", "echo.seen"}, {"timeout", 900}}, 300ms);
    CHECK(std::as_const(*seen_below)["below"]["remaining"].f64() <= 300);
    seen_below = relay(Value{{"action", "echo.seen"}, {"timeout", 0}}, 300ms);
    CHECK(std::as_const(*seen_below)["below"]["remaining"].f64() <= 300);
    const Duration before = mesh.elapsed();
    const auto late =
        relay(Value{{"first_ms", 200}, {"action", "echo.sleep"}, {"params", {{"ms", 5000}}}}, 300ms);
    CHECK(late.error().error_class() == ErrorClass::kRequestTimeout);
    CHECK(to_ms(mesh.elapsed() - before) < 310);
  }

  TEST_CASE("a nested call for which no time is left is skipped") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Runs runs;
    std::optional<Error> skipped;
    a.add_service(failing(runs));
    a.add_service(make_service("slow", [&](Service& s) {
      s.action("call", [&](Context& c) -> Task<void> {
        co_await c.broker().sleep(200ms);
        auto result = co_await c.try_call("failing.run");
        skipped = result.error();
      });
    }));
    mesh.start();
    (void)mesh.await(a.try_call("slow.call", {}, {.timeout = 100ms}));
    mesh.run_for(1s);
    REQUIRE(skipped.has_value());
    CHECK(skipped->error_class() == ErrorClass::kRequestSkipped);
    CHECK(skipped->code() == 514);
    CHECK(skipped->data()["action"].str() == "failing.run");
    CHECK(runs.count == 0);
  }

  TEST_CASE("calls nest no deeper than max_call_level") {
    for (const bool remote : {false, true}) {
      SimMesh mesh;
      const BrokerOptions options{.max_call_level = 5, .registry = {.prefer_local = false}};
      int runs = 0;
      for (const char* id : {"a", "b"}) {
        if (!remote && *id == 'b') continue;
        mesh.add(id, options).add_service(make_service("loop", [&runs](Service& s) {
          s.action("again", [&runs](Context& c) -> Task<void> {
            ++runs;
            co_await c.call<void>("loop.again");
          });
        }));
      }
      mesh.start();
      const auto result = mesh.await(mesh["a"].try_call<void>("loop.again"));
      CHECK(result.error().error_class() == ErrorClass::kMaxCallLevel);
      CHECK(result.error().data()["level"].i64() == 5);
      CHECK(runs == 5);
    }
  }

  TEST_CASE("a fallback is the result of a call that fails, whatever it is and whatever the reason") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Runs runs;
    mesh.add("b").add_service(failing(runs));
    mesh["b"].add_service(echo());
    mesh.start();
    for (const Value& fallback :
         {Value(), Value(0), Value(false), Value(""), Value::array(), Value{{"x", 1}}}) {
      CAPTURE(to_json(fallback));
      CHECK(mesh.await(a.call("failing.run", {}, {.fallback = &fallback})) == fallback);
      CHECK(mesh.await(a.call("no.such", {}, {.fallback = &fallback})) == fallback);
      CHECK(mesh.await(a.call("echo.whoami", {}, {.node = "c", .fallback = &fallback})) == fallback);
      CHECK(mesh.await(a.call("echo.sleep", {{"ms", 100}}, {.timeout = 10ms, .fallback = &fallback})) ==
            fallback);
      CHECK(mesh.await(a.call("echo.value", {{"value", 5}}, {.fallback = &fallback})).i64() == 5);
    }
  }

  TEST_CASE("a call for one node goes there, or is not found") {
    SimMesh mesh;
    for (const char* id : {"a", "b", "c"}) mesh.add(id).add_service(echo());
    mesh.add("d");
    mesh.start();
    for (const char* id : {"a", "b", "c"}) {
      for (int i = 0; i < 3; ++i)
        CHECK(mesh.await(mesh["a"].call<std::string>("echo.whoami", {}, {.node = id})) == id);
    }
    for (const char* id : {"d", "nobody"}) {
      const auto result = mesh.await(mesh["a"].try_call("echo.whoami", {}, {.node = id}));
      CHECK(result.error().error_class() == ErrorClass::kServiceNotFound);
      CHECK(to_json(result.error().data()) ==
            R"({"action":"echo.whoami","nodeID":")" + std::string(id) + R"("})");
    }
  }

  TEST_CASE("params arrive as they were handed over, and a handler's changes never reach the caller's") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Broker& b = mesh.add("b");
    b.add_service(echo());
    b.add_service(make_service("greedy", [](Service& s) {
      s.action("change", [](Context&, Value params) {
        params["a"] = 9;
        params["b"]["c"] = 9;
        return params;
      });
      s.action("typed", [](Context&, Pair p) {
        p.a = 9;
        p.b = "changed";
        return p.a;
      });
    }));
    mesh.start();
    for (Broker* broker : {&a, &b}) {
      CHECK(to_json(mesh.await(broker->call("echo.params"))) == "{}");
      CHECK(to_json(mesh.await(broker->call("echo.params", nullptr))) == "null");
      CHECK(to_json(mesh.await(broker->call("echo.params", 5))) == "5");
      CHECK(to_json(mesh.await(broker->call("echo.params", "x"))) == R"("x")");
      CHECK(to_json(mesh.await(broker->call("echo.params", arr(1, arr(2))))) == "[1,[2]]");
      CHECK(to_json(mesh.await(broker->call("echo.params", {{"a", {{"b", arr()}}}}))) == R"({"a":{"b":[]}})");
      const Value binary = mesh.await(broker->call("echo.params", Value(Binary{std::string("\0\xff", 2)})));
      CHECK((binary.is_binary() || binary["type"].str_or({}) == "Buffer"));
      const Pair pair{5, "x"};
      CHECK(mesh.await(broker->call<Pair>("echo.params", pair)).b == "x");
      const Value params{{"a", 5}, {"b", {{"c", 1}}}};
      CHECK(to_json(mesh.await(broker->call("greedy.change", params))) == R"({"a":9,"b":{"c":9}})");
      CHECK(to_json(params) == R"({"a":5,"b":{"c":1}})");
      CHECK(mesh.await(broker->call<int>("greedy.typed", pair)) == 9);
      CHECK(pair.a == 5);
      CHECK(pair.b == "x");
    }
  }

  TEST_CASE("falsy results are results") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Broker& b = mesh.add("b");
    b.add_service(echo());
    mesh.start();
    for (Broker* broker : {&a, &b}) {
      for (const char* text : {"null", "false", "0", R"("")", "[]", "{}"})
        CHECK(to_json(mesh.await(broker->call("echo.value", {{"value", *parse_json(text)}}))) == text);
      CHECK(mesh.await(broker->call("echo.nothing")).is_null());
      const Payload nothing = mesh.await(broker->call<Payload>("echo.nothing"));
      CHECK(nothing.is_absent());
    }
  }

  TEST_CASE("an error arrives as it was thrown, from however far") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    mesh.add("b").add_service(front());
    mesh.add("c").add_service(make_service("fail", [](Service& s) {
      s.action("validation", [](Context&) {
        throw ValidationError("bad", "VALIDATION_ERROR", arr(Value{{"field", "a"}}));
      });
      s.action("custom", [](Context&) {
        Error::Detail detail;
        detail.error_class = ErrorClass::kForeign;
        detail.name = "PaymentError";
        detail.message = "no money";
        detail.code = Value("E_FUNDS");
        detail.type = Value("FUNDS");
        detail.data = Value{{"missing", 12}};
        detail.retryable = true;
        throw Exception(Error(detail));
      });
      s.action("standard", [](Context&) { throw std::out_of_range("too far"); });
    }));
    mesh.start();
    const auto far = [&](const char* action) {
      const auto result = mesh.await(a.try_call("front.relay", Value{{"action", action}}));
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().node_id() == "c");
      return result.error();
    };
    const Error validation = far("fail.validation");
    CHECK(validation.error_class() == ErrorClass::kValidation);
    CHECK(validation.code() == 422);
    CHECK(validation.type() == "VALIDATION_ERROR");
    CHECK(to_json(validation.data()) == R"([{"field":"a"}])");
    const Error custom = far("fail.custom");
    CHECK(custom.name() == "PaymentError");
    CHECK(custom.message() == "no money");
    CHECK(custom.detail().code.str() == "E_FUNDS");
    CHECK(custom.type() == "FUNDS");
    CHECK(custom.retryable());
    CHECK(custom.data()["missing"].i64() == 12);
    CHECK(custom.stack() == "PaymentError: no money");
    CHECK(far("fail.standard").message() == "too far");
    CHECK_THROWS_AS(mesh.await(a.call("front.relay", Value{{"action", "fail.validation"}})), ValidationError);
  }

  TEST_CASE("a call that nobody awaits runs on; a coroutine that is gone is not woken by its call") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    int served = 0;
    mesh.add("b").add_service(make_service("count", [&](Service& s) {
      s.action("one", [&](Context& c) -> Task<int> {
        co_await c.broker().sleep(10ms);
        co_return ++served;
      });
    }));
    mesh.start();
    (void)a.call("count.one");
    mesh.run_for(1s);
    CHECK(served == 1);
    bool woken = false;
    const auto waiting = [](Broker& broker, bool& flag) -> Task<void> {
      (void)co_await broker.call("count.one");
      flag = true;
    };
    const auto waiting_for_all = [](Broker& broker, bool& flag) -> Task<void> {
      (void)co_await broker.mcall({{"count.one"}, {"count.one"}});
      flag = true;
    };
    const auto settling = [](Broker& broker, bool& flag) -> Task<void> {
      (void)co_await broker.mcall({{"count.one"}, {"no.such"}}).settled();
      flag = true;
    };
    for (int which = 0; which < 3; ++which) {
      Task<void> task = which == 0   ? waiting(a, woken)
                        : which == 1 ? waiting_for_all(a, woken)
                                     : settling(a, woken);
      task.start([](void*) {}, nullptr);
      mesh.run_for(5ms);
      task = {};
    }
    mesh.run_for(1s);
    CHECK_FALSE(woken);
    CHECK(served == 5);
    CHECK(a.pending_requests() == 0);
  }

  TEST_CASE("a handler on the worker pool serves calls of both sides") {
    SimMesh mesh;
    mesh.add("b").add_service(make_service("work", [](Service& s) {
      s.action(
          "hard",
          [](Context& c) { return std::string(c.caller()) + std::to_string(c.params.value()["n"].i64()); },
          {.blocking = true});
      s.action("harder", [](Context&) { throw ClientError("too hard", 413); }, {.blocking = true});
    }));
    mesh.add("a");
    mesh.process("b").loop().set_blocking_time(30ms);
    mesh.start();
    for (const char* id : {"a", "b"}) {
      CHECK(mesh.await(mesh[id].call<std::string>("work.hard", {{"n", 3}}, {.caller = "x"})) == "x3");
      CHECK(mesh.await(mesh[id].try_call("work.harder")).error().code() == 413);
      CHECK(mesh.await(mesh[id].try_call("work.hard", {}, {.timeout = 10ms})).error().code() == 504);
    }
    mesh.run_for(1s);
  }
}

TEST_SUITE("mcall") {
  TEST_CASE("several calls give their results in order, or the first error in time") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    mesh.add("b").add_service(echo());
    mesh["b"].add_service(make_service("late", [](Service& s) {
      s.action("fail", [](Context& c) -> Task<int> {
        co_await c.broker().sleep(from_ms(c.params.value()["ms"].f64()));
        throw ClientError(std::string(c.params.value()["text"].str()));
      });
    }));
    mesh.start();
    const auto values = mesh.await(a.mcall({{"echo.sleep", {{"ms", 50}}},
                                            {"echo.value", {{"value", "x"}}},
                                            {"echo.whoami", {}, {.node = "b"}}}));
    REQUIRE(values.size() == 3);
    CHECK(values[0].i64() == 1);
    CHECK(values[1].str() == "x");
    CHECK(values[2].str() == "b");
    CHECK(mesh.await(a.mcall(std::vector<CallRequest>{})).empty());

    const Duration before = mesh.elapsed();
    CHECK_THROWS_WITH_AS(mesh.await(a.mcall({{"echo.sleep", {{"ms", 500}}},
                                             {"late.fail", {{"ms", 60}, {"text", "second"}}},
                                             {"late.fail", {{"ms", 20}, {"text", "first"}}}})),
                         "first", ClientError);
    CHECK(to_ms(mesh.elapsed() - before) < 50);

    const auto settled = mesh.await(
        a.mcall({{"late.fail", {{"ms", 20}, {"text", "no"}}}, {"echo.value", {{"value", 0}}}, {"no.such"}})
            .settled());
    REQUIRE(settled.size() == 3);
    CHECK(settled[0].error().message() == "no");
    CHECK(settled[1]->i64() == 0);
    CHECK(settled[2].error().code() == 404);
  }

  TEST_CASE("calls side by side carry the context's meta, id and time, and merge meta back, failed or not") {
    for (const bool remote : {false, true}) {
      for (const bool fails : {false, true}) {
        CAPTURE(remote);
        CAPTURE(fails);
        SimMesh mesh;
        Broker& a = mesh.add("a");
        (remote ? mesh.add("b") : a).add_service(echo());
        Value seen_by_callee;
        a.add_service(make_service("many", [&](Service& s) {
          s.action("run", [&](Context& c) -> Task<Value> {
            const std::string last = fails ? "echo.set_meta_and_fail" : "echo.set_meta";
            try {
              const auto values =
                  co_await c.mcall({{"echo.seen"}, {"echo.set_meta", {{"r1", 1}}}, {last, {{"r2", 2}}}});
              seen_by_callee = values[0];
            } catch (const ClientError&) {
              seen_by_callee = Value("failed");
            }
            co_return c.meta();
          });
        }));
        mesh.start();
        const Value meta{{"t", 1}};
        const Value after =
            mesh.await(a.call("many.run", {}, {.timeout = 5s, .meta = &meta, .request_id = "r"}));
        CHECK(after["t"].i64() == 1);
        CHECK(after["r1"].i64() == 1);
        CHECK(after["r2"].i64() == 2);
        if (fails) {
          CHECK(seen_by_callee.str() == "failed");
          continue;
        }
        CHECK(seen_by_callee["requestID"].str() == "r");
        CHECK(seen_by_callee["caller"].str() == "many");
        CHECK(seen_by_callee["level"].i64() == 2);
        CHECK(to_json(seen_by_callee["meta"]) == R"({"t":1})");
        CHECK(seen_by_callee["remaining"].f64() <= 5000);
      }
    }
  }
}

}  // namespace weft
