#include "broker/dispatch/dispatcher.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "lib/sim/sim_runtime.h"

namespace dispatched {

class TeapotError : public weft::ClientError {
 public:
  TeapotError() : ClientError("short and stout", 418, "TEAPOT", weft::Value{{"x", 1}}) {}
};

struct Plain {};

}  // namespace dispatched

namespace weft {

using namespace std::chrono_literals;

namespace {

struct Setup {
  SimWorld world{1};
  SimRuntime process{world, world.fabric().add_host()};
  Broker broker{process.runtime(), {}};
  std::optional<Dispatcher> dispatcher{std::in_place, broker, process.loop(), Logger()};
  std::vector<std::string> ended;  // "ok", or the error, of each run in order.

  void start(std::shared_ptr<Handler> handler, bool blocking = false, bool tracked = true) {
    auto run = dispatcher->make_run(nullptr);
    run->handler = std::move(handler);
    run->tracked = tracked;
    run->done = [this](Run&, Result<Payload> result) {
      ended.push_back(result ? "ok" : result.error().message());
      last = std::move(result);
    };
    dispatcher->start(std::move(run), blocking);
  }

  std::optional<Result<Payload>> last;
};

// Counts what lives in the frame of a coroutine.
struct Counted {
  explicit Counted(int& count) : alive(&count) { ++*alive; }
  Counted(Counted&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
  ~Counted() {
    if (alive != nullptr) --*alive;
  }
  int* alive;
};

void throw_one(int which) {
  switch (which) {
    case 0:
      throw std::runtime_error("standard");
    case 1:
      throw 42;
    case 2:
      throw "text";
    case 3:
      throw std::string("string");
    case 4:
      throw dispatched::TeapotError();
    case 5:
      throw dispatched::Plain();
    case 6:
      Error::service_not_found("a.b").raise();
    default:
      (void)Value(5)["x"].str();  // A ValueError.
  }
}

}  // namespace

TEST_SUITE("dispatcher") {
  TEST_CASE("whatever a handler throws becomes an error: in line, in a coroutine, on the pool") {
    struct Row {
      const char* message;
      int code;
      const char* type;
    };
    const Row rows[] = {
        {"standard", 500, ""},
        {"The handler threw something that is no std::exception.", 500, ""},
        {"text", 500, ""},
        {"string", 500, ""},
        {"short and stout", 418, "TEAPOT"},
        {"The handler threw something that is no std::exception.", 500, ""},
        {"Service 'a.b' is not found.", 404, "SERVICE_NOT_FOUND"},
        {nullptr, 500, ""},
    };
    for (int which = 0; which < static_cast<int>(std::size(rows)); ++which) {
      CAPTURE(which);
      const auto plain = make_handler([which](Context&) { throw_one(which); });
      const auto at_once = make_handler([which](Context&) -> Task<void> {
        throw_one(which);
        co_return;
      });
      const auto later = make_handler([which](Context& c) -> Task<int> {
        co_await c.broker().sleep(1ms);
        throw_one(which);
        co_return 1;
      });
      int way = 0;
      for (const auto& handler : {plain, at_once, later, plain, later}) {
        CAPTURE(way);
        Setup s;
        s.start(handler, way >= 3);
        s.world.run_for(10ms);
        REQUIRE(s.last.has_value());
        REQUIRE_FALSE(s.last->ok());
        const Error& error = s.last->error();
        if (rows[which].message != nullptr) CHECK(error.message() == rows[which].message);
        CHECK(error.code() == rows[which].code);
        CHECK(error.type() == rows[which].type);
        CHECK(s.dispatcher->active() == 0);
        ++way;
      }
    }
  }

  TEST_CASE("what handlers give becomes a payload") {
    Setup s;
    s.start(make_handler([](Context&) {}));
    CHECK((*s.last)->is_absent());
    s.start(make_handler([](Context&) { return Value(); }));
    CHECK_FALSE((*s.last)->is_absent());
    CHECK((*s.last)->value().is_null());
    s.start(make_handler([](Context&) -> Task<std::string> { co_return "x"; }));
    CHECK((*s.last)->value().str() == "x");
    s.start(make_handler([](Context&) -> Result<int> { return 7; }));
    CHECK((*s.last)->value().i64() == 7);
    s.start(make_handler([](Context&) -> Result<> { return Error(ErrorClass::kClient, "no"); }));
    CHECK(s.last->error().message() == "no");
    s.start(make_handler(
        [](Context&) -> Task<Result<Value>> { co_return Error(ErrorClass::kClient, "nor this"); }));
    CHECK(s.last->error().message() == "nor this");
  }

  TEST_CASE("a handler on the pool ends on the loop, and its context has its ids before") {
    Setup s;
    s.process.loop().set_blocking_time(20ms);
    std::string id, request_id;
    s.start(make_handler([&](Context& c) {
              id = c.id();
              request_id = c.request_id();
              return 1;
            }),
            true);
    CHECK(s.dispatcher->active() == 1);
    s.world.run_for(10ms);
    CHECK(s.ended.empty());
    s.world.run_for(20ms);
    CHECK(s.ended == std::vector<std::string>{"ok"});
    CHECK(id.size() == 36);
    CHECK(request_id == id);
    CHECK(s.dispatcher->active() == 0);
  }

  TEST_CASE("an unfinished coroutine is destroyed with all it holds, and its end is not told") {
    Setup s;
    int alive = 0;
    for (const bool blocking : {false, true}) {
      s.start(make_handler([&alive](Context& c) -> Task<void> {
                const Counted counted(alive);
                co_await c.broker().sleep(1h);
              }),
              blocking);
    }
    s.world.run_for(1s);
    CHECK(alive == 2);
    CHECK(s.dispatcher->active() == 2);
    s.dispatcher->abandon_all();
    CHECK(alive == 0);
    CHECK(s.dispatcher->active() == 0);
    s.world.run_for(2h);
    CHECK(s.ended.empty());
  }

  TEST_CASE("work on the pool that ends after it was abandoned, or after the dispatcher, is passed over") {
    for (const bool destroy : {false, true}) {
      CAPTURE(destroy);
      Setup s;
      s.process.loop().set_blocking_time(50ms);
      int alive = 0;
      int ran = 0;
      auto counted = std::make_shared<Counted>(alive);
      s.start(make_handler([&ran, counted](Context&) { ++ran; }), true);
      counted.reset();
      s.world.run_for(10ms);
      CHECK(ran == 1);
      if (destroy) {
        s.dispatcher.reset();
      } else {
        s.dispatcher->abandon_all();
        s.start(make_handler([](Context&) {}));
        CHECK(s.ended.size() == 1);
        s.ended.clear();
      }
      s.world.run_for(1s);
      CHECK(s.ended.empty());
      CHECK(alive == 0);
    }
  }

  TEST_CASE("when_idle is called when the last tracked run has ended, and only then") {
    Setup s;
    int idle = 0;
    const auto note = [&idle] { ++idle; };
    s.dispatcher->when_idle(note);
    CHECK(idle == 1);
    const auto sleeping = make_handler([](Context& c) -> Task<void> { co_await c.broker().sleep(10ms); });
    s.start(sleeping);
    s.start(sleeping, false, false);
    CHECK(s.dispatcher->active() == 1);
    s.dispatcher->when_idle(note);
    CHECK(idle == 1);
    s.start(make_handler([](Context& c) -> Task<void> { co_await c.broker().sleep(20ms); }));
    s.world.run_for(15ms);
    CHECK(idle == 1);
    s.world.run_for(15ms);
    CHECK(idle == 2);
    s.start(sleeping);
    s.world.run_for(1s);
    CHECK(idle == 2);  // Once.
  }

  TEST_CASE("whoever is told of a run's end may abandon all others") {
    Setup s;
    s.start(make_handler([](Context& c) -> Task<void> { co_await c.broker().sleep(1h); }));
    auto run = s.dispatcher->make_run(nullptr);
    run->handler = make_handler([](Context& c) -> Task<void> { co_await c.broker().sleep(10ms); });
    run->done = [&s](Run&, Result<Payload>) { s.dispatcher->abandon_all(); };
    s.dispatcher->start(std::move(run), false);
    s.world.run_for(1s);
    CHECK(s.dispatcher->active() == 0);
    s.start(make_handler([](Context&) {}));
    CHECK(s.dispatcher->active() == 0);
  }

  TEST_CASE("a handler lives as long as its run, though its owner is gone") {
    Setup s;
    int alive = 0;
    auto counted = std::make_shared<Counted>(alive);
    auto handler = make_handler([counted](Context& c) -> Task<int> {
      co_await c.broker().sleep(10ms);
      co_return *counted->alive;
    });
    counted.reset();
    s.start(std::move(handler));
    CHECK(alive == 1);
    s.world.run_for(1s);
    CHECK((*s.last)->value().i64() == 1);
    CHECK(alive == 0);
  }
}

}  // namespace weft
