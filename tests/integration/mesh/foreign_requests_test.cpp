#include <doctest/doctest.h>

#include <string>

#include "tests/integration/mesh/helpers.h"

namespace weft {

using namespace std::chrono_literals;
using namespace test;

TEST_SUITE("requests of foreign nodes") {
  TEST_CASE("a protected action is for its own node alone, and a private one for nobody") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    Broker& b = mesh.add("b");
    b.add_service(make_service("guarded", [](Service& s) {
      s.action("protected", [](Context&) { return 1; }, {.visibility = Visibility::kProtected});
      s.action("private", [](Context&) { return 1; }, {.visibility = Visibility::kPrivate});
      s.action("public", [](Context&) { return 1; }, {.visibility = Visibility::kPublic});
    }));
    ScriptedNode peer(mesh, "p");
    mesh.start();
    CHECK(mesh.await(b.call("guarded.protected")).i64() == 1);
    CHECK(mesh.await(b.try_call("guarded.private")).error().code() == 404);
    CHECK(mesh.await(a.call("guarded.public")).i64() == 1);
    CHECK(mesh.await(a.try_call("guarded.protected")).error().code() == 404);
    // A request made by hand is refused by the node itself.
    for (const char* action : {"guarded.protected", "guarded.private"}) {
      peer.send(PacketType::kRequest, Value{{"id", "1"}, {"action", action}}, "b");
      const std::size_t before = peer.count(PacketType::kResponse);
      REQUIRE(mesh.until([&] { return peer.count(PacketType::kResponse) > before; }, 1s));
      const Value answer = peer.last(PacketType::kResponse);
      CHECK(answer["success"] == Value(false));
      CHECK(answer["error"]["name"].str() == "ServiceNotFoundError");
      CHECK(answer["headers"].is_null());
      CHECK(answer.contains("headers"));
      CHECK(answer["data"].is_null());
    }
  }

  TEST_CASE("the least and the oddest request of a foreign node are answered") {
    SimMesh mesh;
    mesh.add("b").add_service(echo());
    mesh["b"].add_service(front());
    ScriptedNode peer(mesh, "p");
    mesh.start();
    const auto ask = [&](Value request) {
      const std::size_t before = peer.count(PacketType::kResponse);
      peer.send(PacketType::kRequest, std::move(request), "b");
      REQUIRE(mesh.until([&] { return peer.count(PacketType::kResponse) > before; }, 20s));
      return peer.last(PacketType::kResponse);
    };
    Value answer = ask(Value{{"id", "1"}, {"action", "echo.seen"}});
    CHECK(answer["success"] == Value(true));
    CHECK(answer["id"].str() == "1");
    CHECK_FALSE(answer.contains("stream"));
    CHECK_FALSE(answer.contains("seq"));
    CHECK(std::as_const(answer)["data"]["level"].i64() == 1);
    CHECK(std::as_const(answer)["data"]["requestID"].str() == "1");
    CHECK(std::as_const(answer)["data"]["remaining"].is_null());
    for (const Value& meta : {Value(5), Value::array(), Value("x"), Value()}) {
      CAPTURE(to_json(meta));
      answer = ask(Value{{"id", "2"},
                         {"action", "front.relay"},
                         {"meta", meta},
                         {"headers", meta},
                         {"level", 2147483647},
                         {"params", {{"action", "echo.seen"}, {"meta", {{"a", 1}}}}}});
      CHECK(answer["success"] == Value(true));
      CHECK(to_json(std::as_const(answer)["data"]["below"]["meta"]) == R"({"a":1})");
      CHECK(std::as_const(answer)["data"]["below"]["level"].i64() == 2147483647);
    }
    for (const Value& level : {Value(-4), Value("x"), Value(1e300), Value()}) {
      answer = ask(Value{{"id", "3"}, {"action", "echo.seen"}, {"level", level}, {"timeout", 1e300}});
      CHECK(answer["success"] == Value(true));
    }
    answer = ask(Value{{"id", "4"}, {"action", "echo.nothing"}});
    CHECK_FALSE(answer.contains("data"));
    answer = ask(Value{{"id", "5"}, {"action", ""}});
    CHECK(std::as_const(answer)["error"]["code"].i64() == 404);
    answer = ask(Value{{"id", "6"}, {"action", "echo.seen"}, {"stream", true}, {"seq", 0}});
    CHECK(std::as_const(answer)["error"]["type"].str() == "STREAM_NOT_SUPPORTED");
    // Later chunks of that stream get no answer of their own.
    const std::size_t before = peer.count(PacketType::kResponse);
    peer.send(PacketType::kRequest,
              Value{{"id", "6"}, {"action", "echo.seen"}, {"stream", true}, {"seq", 1}, {"params", "x"}},
              "b");
    mesh.run_for(1s);
    CHECK(peer.count(PacketType::kResponse) == before);
  }

  TEST_CASE(
      "a request that brings no time-out has the action's, or the broker's of the node that serves it") {
    SimMesh mesh;
    mesh.add("b", {.request_timeout = 500ms}).add_service(echo());
    ScriptedNode peer(mesh, "p");
    mesh.start();
    struct Row {
      const char* action;
      Value timeout;
      double ms;  // 0: it waits.
    };
    const Value absent;
    for (const Row& row : {Row{"echo.sleep", absent, 500}, Row{"echo.sleep200", absent, 200},
                           Row{"echo.sleep", 100, 100}, Row{"echo.sleep200", 0, 0}}) {
      Value request{{"id", "1"}, {"action", row.action}, {"params", {{"ms", 10'000}}}};
      if (!row.timeout.is_null()) request.set("timeout", row.timeout);
      const std::size_t before = peer.count(PacketType::kResponse);
      const Duration sent = mesh.elapsed();
      peer.send(PacketType::kRequest, request, "b");
      REQUIRE(mesh.until([&] { return peer.count(PacketType::kResponse) > before; }, 1min));
      const double took = to_ms(mesh.elapsed() - sent);
      const Value answer = peer.last(PacketType::kResponse);
      CHECK(answer["success"].boolean() == (row.ms == 0));
      CHECK(took >= (row.ms == 0 ? 10'000 : row.ms));
      if (row.ms > 0) {
        CHECK(took < row.ms + 15);
        CHECK(answer["error"]["name"].str() == "RequestTimeoutError");
        CHECK(answer["error"]["data"]["nodeID"].str() == "b");
      }
      mesh.run_for(20s);
      CHECK(peer.count(PacketType::kResponse) == before + 1);  // Once, however the handler ends later.
    }
  }

  TEST_CASE("answers that come late, twice, or for nobody are passed over") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    ScriptedNode peer(mesh, "p");
    mesh.start();
    peer.announce(1, arr(test::service_info("p", {"act"})));
    REQUIRE(mesh.until([&] { return mesh.sees("a", "p"); }));
    const auto answer = [&](std::string_view id, int data) {
      peer.send(PacketType::kResponse, Value{{"id", id}, {"success", true}, {"data", data}}, "a");
    };
    auto late = a.try_call("p.act", {}, {.timeout = 50ms});
    mesh.run_for(10ms);
    const std::string late_id(peer.last(PacketType::kRequest)["id"].str());
    CHECK(mesh.await(std::move(late)).error().code() == 504);
    auto call = a.try_call("p.act");
    mesh.run_for(10ms);
    const std::string id(peer.last(PacketType::kRequest)["id"].str());
    answer(late_id, 1);
    answer("", 2);
    answer("no-such-id", 3);
    peer.send(PacketType::kResponse, Value{{"success", true}, {"data", 4}}, "a");
    answer(id, 5);
    answer(id, 6);
    CHECK((*mesh.await(std::move(call))).i64() == 5);
    // And one that fails without saying how.
    auto failing_call = a.try_call("p.act");
    mesh.run_for(10ms);
    peer.send(
        PacketType::kResponse,
        Value{
            {"id", peer.last(PacketType::kRequest)["id"]}, {"success", false}, {"meta", 7}, {"headers", "x"}},
        "a");
    const auto result = mesh.await(std::move(failing_call), 1s);
    CHECK(result.error().code() == 500);
    CHECK(result.error().node_id() == "p");
  }
}

}  // namespace weft
