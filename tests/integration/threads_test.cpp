#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/sim_mesh.h"
#include "weft/app.h"

namespace weft {

using namespace std::chrono_literals;
using test::make_service;

namespace {

AppOptions quiet() {
  AppOptions options;
  options.node_id = "n";
  options.log_level = LogLevel::kFatal;
  return options;
}

std::shared_ptr<Service> math() {
  return make_service("math", [](Service& s) {
    s.action("add", [](Context& c) { return c.params.value()["a"].i64() + c.params.value()["b"].i64(); });
    s.action("fail", [](Context&) { throw ClientError("no", 409, "NO"); });
    s.action("meta", [](Context& c) { return c.meta(); });
    s.action("later", [](Context& c) -> Task<int> {
      co_await c.broker().sleep(5ms);
      co_return 1;
    });
    s.action("blocking",
             [](Context& c) {
               // On a worker everything may be read, and calls made that wait.
               const auto sum = c.broker().call_blocking("math.add", {{"a", 1}, {"b", 2}});
               const bool timed = c.remaining().has_value() && *c.remaining() > 0ms;
               return Value{{"sum", sum},           {"id", c.id()},     {"requestID", c.request_id()},
                            {"caller", c.caller()}, {"meta", c.meta()}, {"timed", timed}};
             },
             {.blocking = true});
  });
}

}  // namespace

TEST_SUITE("other threads") {
  TEST_CASE("many threads call at once, and each gets its own answers") {
    App app(quiet());
    app.add_service(math());
    app.start();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&app, &wrong, t] {
        for (int i = 0; i < 40; ++i) {
          if (app.call<std::int64_t>("math.add", {{"a", t}, {"b", i}}) != t + i) ++wrong;
          if (i % 10 == 0 && app.call<int>("math.later") != 1) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    app.stop();
  }

  TEST_CASE("errors are thrown to the thread that called, and what it lent is copied") {
    App app(quiet());
    app.add_service(math());
    app.start();
    CHECK_THROWS_WITH_AS(app.call("math.fail"), "no", ClientError);
    std::optional<std::future<Result<Value>>> with_meta, with_fallback;
    {
      const Value meta{{"text", std::string(100, 'x')}};
      const Value fallback(std::string(100, 'f'));
      const std::string action = "math.meta";
      const std::string request_id(100, 'r');
      with_meta =
          app.broker().call_future(action, {}, {.meta = &meta, .request_id = request_id, .caller = action});
      with_fallback = app.broker().call_future("math.fail", {}, {.fallback = &fallback});
    }
    CHECK(with_meta->get().value()["text"].str() == std::string(100, 'x'));
    CHECK(with_fallback->get().value().str() == std::string(100, 'f'));
    auto failed = app.broker().call_future<int>("no.such");
    CHECK(failed.get().error().code() == 404);
    auto nothing = app.broker().call_future<void>("math.add", {{"a", 1}, {"b", 2}});
    CHECK(nothing.get().ok());
    app.stop();
  }

  TEST_CASE("a blocking handler sees its whole context and may call") {
    App app(quiet());
    app.add_service(math());
    app.start();
    const Value meta{{"user", 7}};
    std::vector<std::future<Result<Value>>> answers;
    for (int i = 0; i < 10; ++i)
      answers.push_back(
          app.broker().call_future("math.blocking", {}, {.timeout = 10s, .meta = &meta, .caller = "me"}));
    for (auto& answer : answers) {
      const Value seen = answer.get().value();
      CHECK(seen["sum"].i64() == 3);
      CHECK(seen["id"].str().size() == 36);
      CHECK(seen["requestID"] == seen["id"]);
      CHECK(seen["caller"].str() == "me");
      CHECK(seen["meta"]["user"].i64() == 7);
      CHECK(seen["timed"] == Value(true));
    }
    app.stop();
  }

  TEST_CASE("waiting on the loop's own thread is refused, for it would never end") {
    App app(quiet());
    app.add_service(math());
    app.start();
    std::string reason;
    app.run_on_loop([&](Broker& broker) -> Task<void> {
      try {
        (void)broker.call_blocking("math.add");
      } catch (const Exception& error) {
        reason = error.type();
      }
      co_return;
    });
    CHECK(reason == "WRONG_THREAD");
    app.stop();
  }

  TEST_CASE("work may be spawned from any thread") {
    App app(quiet());
    app.add_service(math());
    app.start();
    std::promise<int> done;
    app.broker().spawn([&app, &done]() -> Task<void> {
      const int one = co_await app.broker().call<int>("math.later");
      done.set_value(one);
    });
    CHECK(done.get_future().get() == 1);
    app.stop();
  }

  TEST_CASE("a node that is stopped while threads call lets all of them go") {
    App app(quiet());
    app.add_service(math());
    app.start();
    std::vector<std::future<Result<int>>> answers;
    for (int i = 0; i < 50; ++i) answers.push_back(app.broker().call_future<int>("math.later"));
    app.stop();
    for (auto& answer : answers) CHECK(answer.get().ok());  // They were under way: stop() waited for them.
  }
}

TEST_SUITE("app") {
  TEST_CASE("a node that was given no id has one in every line of its log, the transporter's too") {
    struct Lines final : LogSink {
      void write(const LogRecord& record) override {
        const std::lock_guard lock(mutex);
        lines.push_back({std::string(record.module), std::string(record.node_id)});
      }
      std::mutex mutex;
      std::vector<std::pair<std::string, std::string>> lines;
    };
    const auto log = std::make_shared<Lines>();
    AppOptions options;
    options.transporter = "TCP";
    options.tcp.host = "127.0.0.1";
    options.tcp.udp_discovery = false;
    options.log = log;
    App app(std::move(options));
    app.start();
    const std::string id = app.broker().node_id();
    app.stop();
    CHECK(id != "");
    bool transporter_spoke = false;
    for (const auto& line : log->lines) {
      CHECK(line.second == id);
      transporter_spoke = transporter_spoke || line.first == "transporter";
    }
    CHECK(transporter_spoke);
  }
}

}  // namespace weft
