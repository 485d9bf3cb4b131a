#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
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
using Carrier = SimMesh::Carrier;

namespace {

using Lines = std::vector<std::string>;

std::shared_ptr<Service> sleeper(Lines& ended) {
  return make_service("sleeper", [&](Service& s) {
    s.action("sleep", [&](Context& c) -> Task<int> {
      co_await c.broker().sleep(from_ms(c.params.value()["ms"].f64()));
      ended.push_back("slept");
      co_return 1;
    });
    s.action("quick", [](Context& c) { return c.broker().node_id(); });
  });
}

// Notes its life in `lines`.
std::shared_ptr<Service> noting(std::string name, Lines& lines, Duration start_time = {}) {
  return make_service(name, [&lines, name, start_time](Service& s) {
    s.on_created([&lines](Service& self) { lines.push_back(self.full_name() + " created"); });
    s.on_started([&lines, start_time](Service& self) -> Task<void> {
      if (start_time > Duration::zero()) co_await self.broker().sleep(start_time);
      lines.push_back(self.full_name() + " started");
    });
    s.on_stopped([&lines](Service& self) -> Task<void> {
      lines.push_back(self.full_name() + " stopped");
      co_return;
    });
    s.action("get", [](Context&) { return 1; });
  });
}

std::size_t count(const Lines& lines, const std::string& line) {
  return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
}

class Hooked : public Service {
 public:
  explicit Hooked(Lines& lines) : Service("hooked"), lines_(lines) {
    on_created([this](Service&) { lines_.push_back("created hook"); });
    on_started([this](Service&) -> Task<void> {
      lines_.push_back("started hook 1");
      co_return;
    });
    on_started([this](Service&) -> Task<void> {
      lines_.push_back("started hook 2");
      co_return;
    });
    for (const char* which : {"stopped hook 1", "stopped hook 2"}) {
      on_stopped([this, which](Service&) -> Task<void> {
        lines_.push_back(which);
        co_return;
      });
    }
  }

 protected:
  void created() override { lines_.push_back("created"); }
  Task<void> started() override {
    lines_.push_back("started");
    co_return;
  }
  Task<void> stopped() override {
    lines_.push_back("stopped");
    co_return;
  }

 private:
  Lines& lines_;
};

}  // namespace

TEST_SUITE("start") {
  TEST_CASE("a service is callable when its own start hook is done; others do not wait for it") {
    for (const Carrier carrier : {Carrier::kMemory, Carrier::kBus, Carrier::kTcp}) {
      CAPTURE(static_cast<int>(carrier));
      SimMesh mesh(carrier);
      Lines lines;
      Broker& a = mesh.add("a");
      mesh.start();
      Broker& b = mesh.add("b");
      b.add_service(noting("slow", lines, 2s));
      b.add_service(noting("quick", lines));
      Task<void> starting = b.start();
      const Duration begun = mesh.elapsed();
      starting.start([](void*) {}, nullptr);
      REQUIRE(mesh.until([&] { return !a.node_list(true).items()[0].empty() && mesh.sees("a", "b"); }, 2s));
      mesh.await(a.wait_for_services("quick", 1500ms));
      CHECK(mesh.await(a.call("quick.get")).i64() == 1);
      CHECK(mesh.elapsed() - begun <= 1500ms);
      CHECK(mesh.await(a.try_call("slow.get")).error().code() == 404);
      CHECK(mesh.await(b.try_call("slow.get")).error().code() == 404);
      CHECK_FALSE(b.started());
      mesh.await(a.wait_for_services("slow"));
      CHECK(mesh.elapsed() - begun >= 2s);
      CHECK(mesh.await(a.call("slow.get")).i64() == 1);
      CHECK(b.started());
    }
  }

  TEST_CASE("every service is created and started once, whenever it is added, and is soon there for all") {
    SimMesh mesh;
    Lines lines;
    Broker& a = mesh.add("a");
    mesh.start();
    Broker& b = mesh.add("b");
    b.add_service(noting("before", lines));
    b.add_service(make_service("adder", [&](Service& s) {
      s.on_started([&](Service& self) -> Task<void> {
        self.broker().add_service(noting("in-hook", lines));
        co_await self.broker().sleep(100ms);
        self.broker().add_service(noting("in-slow-hook", lines));
      });
    }));
    const auto listener = b.on_local("$broker.started", [&](std::string_view, const Value&) {
      b.add_service(noting("at-started", lines));
    });
    mesh.start();
    b.add_service(noting("after", lines));
    mesh.run_for(2s);
    for (const std::string name : {"before", "in-hook", "in-slow-hook", "at-started", "after"}) {
      CAPTURE(name);
      CHECK(count(lines, name + " created") == 1);
      CHECK(count(lines, name + " started") == 1);
      CHECK(mesh.await(a.call(name + ".get")).i64() == 1);
    }
    mesh.stop("b");
    for (const std::string name : {"before", "in-hook", "in-slow-hook", "at-started", "after"})
      CHECK(count(lines, name + " stopped") == 1);
  }

  TEST_CASE("hooks run in order, stopped ones in reverse, the class's own where they belong") {
    SimMesh mesh;
    Lines lines;
    mesh.add("a").add<Hooked>(lines);
    mesh.start();
    mesh.stop("a");
    CHECK(lines == Lines{"created", "created hook", "started", "started hook 1", "started hook 2",
                         "stopped hook 2", "stopped hook 1", "stopped"});
  }

  TEST_CASE("a service starts when what it depends on is there, on whatever node") {
    SimMesh mesh;
    Lines lines;
    Broker& a = mesh.add("a");
    auto dependent = noting("dependent", lines);
    dependent->depends_on("base").depends_on("v2.other");
    a.add_service(dependent);
    Broker& b = mesh.add("b");
    Task<void> starting = a.start();
    starting.start([](void*) {}, nullptr);
    Task<void> other = b.start();
    other.start([](void*) {}, nullptr);
    mesh.run_for(3s);
    CHECK(count(lines, "dependent started") == 0);
    b.add_service(noting("base", lines));
    mesh.run_for(1s);
    CHECK(count(lines, "dependent started") == 0);
    auto versioned = noting("other", lines);
    versioned->version(2);
    b.add_service(versioned);
    mesh.run_for(100ms);
    CHECK(count(lines, "dependent started") == 1);
    CHECK(a.started());
  }

  TEST_CASE("a start that fails is thrown, and leaves nothing half open") {
    SimMesh mesh;
    Lines lines;
    Broker& other = mesh.add("other");
    mesh.start();
    Broker& a = mesh.add("a");
    a.add_service(noting("good", lines));
    a.add_service(make_service("bad", [](Service& s) {
      s.on_started([](Service&) -> Task<void> {
        throw ClientError("cannot", 418);
        co_return;
      });
    }));
    CHECK_THROWS_WITH_AS(mesh.await(a.start()), "cannot", ClientError);
    CHECK_FALSE(a.started());
    CHECK(lines == Lines{"good created", "good started", "good stopped"});
    mesh.run_for(1s);
    CHECK_FALSE(mesh.sees("other", "a"));
    CHECK(mesh.bus->client_count() == 1);
    CHECK(other.started());
    // Dependencies that do not come are such a failure; later than start, only the service is missing.
    Broker& b = mesh.add("b", {.dependency_timeout = 500ms});
    b.add_service(make_service("lonely", [](Service& s) { s.depends_on("no-such"); }));
    CHECK_THROWS_AS(mesh.await(b.start()), ServerError);
    Broker& c = mesh.add("c", {.dependency_timeout = 500ms});
    mesh.await(c.start());
    std::string reported;
    const auto listener = c.on_local(
        "$broker.error", [&](std::string_view, const Value& payload) { reported = payload["type"].str(); });
    c.add_service(make_service("lonely", [](Service& s) { s.depends_on("no-such"); }));
    mesh.run_for(1s);
    CHECK(reported == "failedServiceLoad");
    CHECK(c.local_service("lonely") == nullptr);
    CHECK(c.started());
  }

  TEST_CASE("services that cannot be are refused when they are added") {
    SimMesh mesh;
    Broker& a = mesh.add("a");
    a.add_service(make_service("one"));
    const auto refused = [&](const std::shared_ptr<Service>& service) -> std::string {
      try {
        a.add_service(service);
      } catch (const ServiceSchemaError& error) {
        return error.what();
      }
      return {};
    };
    CHECK(refused(nullptr) != "");
    CHECK(refused(make_service("one")).find("'one'") != std::string::npos);
    CHECK(refused(make_service("$node")).find("'$node'") != std::string::npos);
    CHECK(refused(make_service("s", [](Service& s) {
            s.action("x", [](Context&) {}, {.strategy = "Sharrd"});
          })).find("'Sharrd'") != std::string::npos);
    CHECK(refused(make_service("s", [](Service& s) {
            s.action("x", [](Context&) {}, {.strategy = "Shard", .strategy_options = Value{{"vnodes", 0}}});
          })).find("vnodes") != std::string::npos);
    CHECK(refused(make_service("s", [](Service& s) {
            s.event("x", [](Context&) {}, {.strategy_options = Value{{"shardKey", "a"}}});
          })).find("strategy_options") != std::string::npos);
    CHECK(refused(make_service("s", [](Service& s) {
            s.event("x", [](Context&) {});
            s.event("x", [](Context&) {});
          })).find("twice") != std::string::npos);
    CHECK(refused(make_service(
              "s", [](Service& s) { s.action("x", [](Context&) {}, {.extra = Value(5)}); })) != "");
    CHECK_THROWS_AS(make_service(""), ServiceSchemaError);
    CHECK_THROWS_AS(make_service("s", [](Service& s) { s.action("", [](Context&) {}); }), ServiceSchemaError);
    CHECK_THROWS_AS(make_service("s", [](Service& s) { s.event("", [](Context&) {}); }), ServiceSchemaError);
    CHECK_THROWS_AS(make_service("s", [](Service& s) { s.settings(Value(1)); }), ServiceSchemaError);
    CHECK_THROWS_AS(make_service("s",
                                 [](Service& s) {
                                   s.action("x", [](Context&) {});
                                   s.action("x", [](Context&) {});
                                 }),
                    ServiceSchemaError);
    CHECK_THROWS_AS(a.local_service("one")->action("late", [](Context&) {}), ServiceSchemaError);
    CHECK(
        refused(make_service("good", [](Service& s) {
          s.action("x", [](Context&) {}, {.strategy = "shard", .strategy_options = Value{{"shardKey", "a"}}});
        })) == "");
  }

  TEST_CASE(
      "hooks of the options run in order, and what they throw is told or logged, never lost in the loop") {
    SimMesh mesh;
    Lines lines;
    BrokerOptions options;
    options.created = [&](Broker&) { lines.push_back("created"); };
    options.started = [&](Broker& broker) { lines.push_back(broker.started() ? "started" : "too early"); };
    options.stopped = [&](Broker&) {
      lines.push_back("stopped");
      throw std::runtime_error("no");
    };
    mesh.add("a", options);
    mesh.start();
    const auto listener =
        mesh["a"].on_local("$broker.stopped", [](std::string_view, const Value&) { throw 5; });
    mesh.stop("a");
    CHECK(lines == Lines{"created", "started", "stopped"});
    options.started = [](Broker&) { throw ClientError("not like this"); };
    Broker& b = mesh.add("b", options);
    CHECK_THROWS_WITH_AS(mesh.await(b.start()), "not like this", ClientError);
    CHECK_FALSE(b.started());
  }
}

TEST_SUITE("stop") {
  TEST_CASE("stopping loses no request: rolling restarts under traffic without one error") {
    for (const Carrier carrier : {Carrier::kBus, Carrier::kTcp}) {
      CAPTURE(static_cast<int>(carrier));
      SimMesh mesh(carrier);
      Lines ended;
      Broker& client = mesh.add("client");
      for (const char* id : {"a", "b"}) mesh.add(id).add_service(sleeper(ended));
      mesh.start();
      std::vector<TryCall<Value>> calls;
      const auto traffic = [&](Duration span) {
        for (const Duration until = mesh.elapsed() + span; mesh.elapsed() < until; mesh.run_for(5ms))
          calls.push_back(client.try_call("sleeper.sleep", {{"ms", 20}}, {.timeout = 5s}));
      };
      for (int round = 0; round < 3; ++round) {
        for (const char* id : {"a", "b"}) {
          traffic(200ms);
          Task<void> stopping = mesh[id].stop();
          bool stopped = false;
          stopping.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &stopped);
          while (!stopped) traffic(50ms);
          stopping = {};
          mesh.crash(id);  // The process ends; its broker has stopped.
          traffic(200ms);
          mesh.add(id).add_service(sleeper(ended));
          Task<void> starting = mesh[id].start();
          bool started = false;
          starting.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &started);
          while (!started || !mesh.sees("client", id)) traffic(50ms);
          traffic(200ms);
        }
      }
      std::size_t failed = 0;
      for (auto& call : calls) {
        const auto result = mesh.await(std::move(call));
        if (!result.ok()) MESSAGE(result.error().to_string());
        failed += result.ok() ? 0 : 1;
      }
      CHECK(calls.size() > 500);
      CHECK(failed == 0);
    }
  }

  TEST_CASE(
      "a node that stops says so first, serves on for stop_delay, then refuses, and says goodbye last") {
    SimMesh mesh;
    Lines ended;
    int events = 0;
    Broker& a = mesh.add("a", {.registry = {.stop_delay = 200ms}});
    a.add_service(sleeper(ended));
    a.add_service(make_service("listener", [&](Service& s) {
      s.event("e", [&](Context&) { ++events; });
      s.on_stopped([](Service& self) -> Task<void> { co_await self.broker().sleep(300ms); });
    }));
    ScriptedNode peer(mesh, "p");
    mesh.start();
    mesh.run_for(50ms);
    peer.received.clear();
    Task<void> stopping = a.stop();
    stopping.start([](void*) {}, nullptr);
    const auto ask = [&] {
      const std::size_t before = peer.count(PacketType::kResponse);
      peer.send(PacketType::kRequest, Value{{"id", "1"}, {"action", "sleeper.quick"}}, "a");
      peer.send(PacketType::kEvent, Value{{"id", "2"}, {"event", "e"}}, "a");
      mesh.run_for(20ms);
      REQUIRE(peer.count(PacketType::kResponse) == before + 1);
      return peer.last(PacketType::kResponse);
    };
    mesh.run_for(20ms);
    REQUIRE(peer.count(PacketType::kInfo) == 1);
    CHECK(peer.last(PacketType::kInfo)["services"].empty());
    CHECK(ask()["success"] == Value(true));
    CHECK(events == 1);
    mesh.run_for(200ms);
    const Value refused = ask();
    CHECK(refused["error"]["name"].str() == "ServiceNotAvailableError");
    CHECK(events == 1);
    CHECK(peer.count(PacketType::kDisconnect) == 0);
    mesh.run_for(1s);
    CHECK(peer.count(PacketType::kDisconnect) == 1);
    CHECK(peer.received.back().type == PacketType::kDisconnect);
    CHECK_FALSE(a.started());
  }

  TEST_CASE("stop waits for running handlers and calls, but no longer than told") {
    struct Row {
      const char* what;
      int ms;  // How long the handler runs.
      TrackingOptions tracking;
      bool tracked;
      bool ends;
      Duration at_least, at_most;
    };
    const Row rows[] = {
        {"it ends in time", 1000, {true, 5s}, true, true, 980ms, 1500ms},
        {"it takes too long", 60'000, {true, 2s}, true, false, 2000ms, 2500ms},
        {"tracking is off", 1000, {false, 5s}, true, false, 0ms, 500ms},
        {"the call is not tracked", 1000, {true, 5s}, false, false, 0ms, 500ms},
    };
    for (const bool serving : {false, true}) {  // The node that stops serves the call, or makes it.
      for (const Row& row : rows) {
        if (serving && !row.tracked) continue;
        CAPTURE(serving);
        CAPTURE(row.what);
        SimMesh mesh;
        Lines ended;
        mesh.add("client", {.tracking = row.tracking});
        mesh.add("server", {.tracking = row.tracking}).add_service(sleeper(ended));
        mesh.start();
        auto call = mesh["client"].try_call("sleeper.sleep", {{"ms", row.ms}}, {.tracking = row.tracked});
        mesh.run_for(10ms);
        const Duration before = mesh.elapsed();
        mesh.await(mesh[serving ? "server" : "client"].stop());
        const Duration took = mesh.elapsed() - before;
        CHECK(took >= row.at_least);
        CHECK(took <= row.at_most);
        CHECK(ended.size() == (row.ends ? 1 : 0));
        const auto result = mesh.await(std::move(call), 100s);
        CHECK(result.ok() == row.ends);
        if (!row.ends) CHECK(result.error().retryable());
        // Nothing of the stopped node runs any more.
        if (serving) {
          mesh.run_for(2min);
          CHECK(ended.size() == (row.ends ? 1 : 0));
        }
      }
    }
  }

  TEST_CASE("once a node has stopped nothing of it runs: no timer, no handler, no call") {
    for (const Carrier carrier : {Carrier::kMemory, Carrier::kBus, Carrier::kTcp}) {
      CAPTURE(static_cast<int>(carrier));
      SimMesh mesh(carrier);
      Lines ended;
      const BrokerOptions options{.request_timeout = 30s,
                                  .retry = {.enabled = true, .retries = 100, .delay = 1s, .max_delay = 1s},
                                  .tracking = {.enabled = true, .shutdown_timeout = 100ms}};
      Broker& a = mesh.add("a", options);
      a.add_service(sleeper(ended));
      int ran = 0;
      a.add_service(make_service("busy", [&](Service& s) {
        s.action("loop", [&](Context& c) -> Task<void> {
          while (true) {
            co_await c.broker().sleep(50ms);
            ++ran;
          }
        });
        s.action("fail", [&](Context&) {
          ++ran;
          throw RetryableError("again");
        });
        s.event("**", [&](Context& c) -> Task<void> {
          co_await c.broker().sleep(150ms);
          ++ran;
        });
      }));
      std::optional<ScriptedNode> mute;
      mesh.start();
      if (carrier == Carrier::kMemory) {
        mute.emplace(mesh, "mute");
        mute->announce(1, arr(service_info("mute", {"x"})));
        mesh.run_for(50ms);
        mute->send(PacketType::kRequest, Value{{"id", "1"}, {"action", "busy.loop"}, {"timeout", 9000}}, "a");
      }
      std::vector<TryCall<Value>> calls;
      for (const char* action : {"busy.loop", "busy.fail", "sleeper.sleep", "mute.x", "no.such"})
        calls.push_back(a.try_call(action, {{"ms", 3600'000}}));
      a.emit("whatever");
      mesh.run_for(300ms);
      CHECK(ran > 0);
      mesh.await(a.stop());
      for (auto& call : calls) {
        REQUIRE(call.await_ready());
        CHECK_FALSE(mesh.await(std::move(call)).ok());
      }
      CHECK(a.pending_requests() == 0);
      const int before = ran;
      mesh.run_for(50ms);
      const auto events = mesh.world.events_run();
      mesh.run_for(1h);
      CHECK(mesh.world.events_run() == events);
      CHECK(ran == before);
      CHECK(ended.empty());
      CHECK(mesh.await(a.try_call("sleeper.quick")).error().error_class() == ErrorClass::kBrokerDisconnected);
    }
  }

  TEST_CASE("whoever asks a broker to stop waits for its end, even a second one, even a handler of its own") {
    SimMesh mesh;
    Lines ended;
    Broker& a = mesh.add("a", {.tracking = {.enabled = true, .shutdown_timeout = 500ms}});
    a.add_service(sleeper(ended));
    a.add_service(make_service("admin", [](Service& s) {
      s.action("stop", [](Context& c) -> Task<void> { co_await c.broker().stop(); });
    }));
    mesh.add("b");
    mesh.start();
    auto from_handler = mesh["b"].try_call<void>("admin.stop");
    mesh.run_for(10ms);
    Task<void> first = a.stop();
    Task<void> second = a.stop();
    bool first_done = false, second_done = false;
    first.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &first_done);
    second.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &second_done);
    mesh.run_for(300ms);
    CHECK_FALSE(first_done);
    CHECK_FALSE(second_done);
    mesh.run_for(1s);
    CHECK(first_done);
    CHECK(second_done);
    mesh.await(a.stop());
    // The handler that asked was itself what was waited for: it was let go at the limit.
    CHECK_FALSE(mesh.await(std::move(from_handler)).ok());
    CHECK_FALSE(mesh.sees("b", "a"));
  }

  TEST_CASE("a broker that was never started stops, and one that is starting does not start any more") {
    SimMesh mesh;
    Lines lines;
    Broker& a = mesh.add("a");
    a.add_service(noting("x", lines));
    mesh.await(a.stop());
    CHECK(lines == Lines{"x created"});
    CHECK_THROWS_AS(mesh.await(a.start()), Exception);

    Broker& b = mesh.add("b");
    b.add_service(noting("slow", lines, 2s));
    lines.clear();
    Task<void> starting = b.start();
    starting.start([](void*) {}, nullptr);
    mesh.run_for(500ms);
    mesh.await(b.stop());
    CHECK_FALSE(b.started());
    mesh.run_for(5s);
    CHECK_FALSE(b.started());
    CHECK(starting.done());
    CHECK_THROWS_AS(starting.take(), BrokerDisconnectedError);
    CHECK(mesh.bus->client_count() == 0);
  }

  TEST_CASE("a broker may be destroyed at any moment, with everything under way") {
    for (const Carrier carrier : {Carrier::kMemory, Carrier::kBus, Carrier::kTcp}) {
      for (int moment = 0; moment < 12; ++moment) {
        CAPTURE(static_cast<int>(carrier));
        CAPTURE(moment);
        SimMesh mesh(carrier);
        Lines ended;
        mesh.add("other").add_service(sleeper(ended));
        mesh.start();
        Broker& a = mesh.add("a", {.tracking = {.enabled = true, .shutdown_timeout = 40ms}});
        a.add_service(make_service("own", [](Service& s) {
          s.action("hard", [](Context&) { return 1; }, {.blocking = true});
          s.action("far", [](Context& c) -> Task<Value> {
            co_return co_await c.call("sleeper.sleep", {{"ms", 50}});
          });
          s.event("**", [](Context& c) -> Task<void> { co_await c.broker().sleep(1s); });
        }));
        mesh.process("a").loop().set_blocking_time(15ms);
        Task<void> starting = a.start();
        starting.start([](void*) {}, nullptr);
        std::vector<TryCall<Value>> calls;
        std::vector<MultiCall> many;
        Task<void> stopping;
        a.spawn([&a]() -> Task<void> {
          while (true) co_await a.sleep(3ms);
        });
        for (int step = 0; step <= moment; ++step) {
          mesh.run_for(Duration(7ms) * (step + 1));
          for (const char* action : {"own.hard", "own.far", "sleeper.sleep", "no.such"})
            calls.push_back(a.try_call(action, {{"ms", 30}}, {.timeout = 25ms, .retries = 2}));
          many.push_back(a.mcall({{"own.hard"}, {"sleeper.sleep", {{"ms", 20}}}}));
          a.broadcast("e", {{"n", step}});
          if (step == 8) {
            stopping = a.stop();
            stopping.start([](void*) {}, nullptr);
          }
        }
        mesh.process("a").kill();
        starting = {};
        stopping = {};
        mesh.crash("a");
        mesh.run_for(1s);
        // Calls may be held longer than their broker; they never end, or have ended.
        calls.clear();
        many.clear();
        CHECK(mesh.await(mesh["other"].call<std::string>("sleeper.quick")) == "other");
      }
    }
  }

  TEST_CASE("a world of starts, traffic, stops and ends leaves nothing behind") {
    SimMesh mesh;
    Lines ended;
    mesh.add("steady").add_service(sleeper(ended));
    mesh.start();
    for (int round = 0; round < 100; ++round) {
      Broker& a = mesh.add(
          "a", {.registry = {.stop_delay = 10ms}, .tracking = {.enabled = true, .shutdown_timeout = 20ms}});
      a.add_service(make_service("own", [](Service& s) {
        s.action("far", [](Context& c) -> Task<Value> {
          co_return co_await c.call("sleeper.sleep", {{"ms", 15}});
        });
      }));
      mesh.await(a.start());
      mesh.run_for(from_ms(static_cast<double>(mesh.world.random().below(80))));
      std::vector<TryCall<Value>> calls;
      for (int i = 0; i < 5; ++i) {
        calls.push_back(a.try_call("own.far", {}, {.timeout = 1s}));
        calls.push_back(mesh["steady"].try_call("own.far", {}, {.timeout = 1s}));
      }
      mesh.run_for(from_ms(static_cast<double>(mesh.world.random().below(40))));
      mesh.stop("a");
      for (auto& call : calls) (void)mesh.await(std::move(call), 2s);
    }
    CHECK(mesh["steady"].pending_requests() == 0);
    CHECK(mesh.bus->client_count() == 1);
  }
}

}  // namespace weft
