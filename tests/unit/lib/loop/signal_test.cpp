#include "lib/loop/signal.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/loop/task.h"
#include "tests/support/manual_loop.h"

namespace weft {

using namespace std::chrono_literals;

namespace {

struct Waiting {
  Task<void> task;
  void start() {
    task.start([](void*) {}, nullptr);
  }
};

// Waits once and notes how that ended.
Task<void> wait_once(Signal& signal, EventLoop& loop, Instant deadline, std::string name, std::string& log) {
  const bool notified = co_await signal.wait(loop, deadline);
  log += name + (notified ? "+" : "-");
}

}  // namespace

TEST_SUITE("signal") {
  TEST_CASE("everyone who waits is woken in order, or by the deadline") {
    test::ManualLoop loop;
    Signal signal;
    std::string log;
    Waiting a{wait_once(signal, loop, kNever, "a", log)};
    Waiting b{wait_once(signal, loop, loop.now() + 1s, "b", log)};
    Waiting c{wait_once(signal, loop, kNever, "c", log)};
    a.start();
    b.start();
    c.start();
    loop.advance(2s);
    CHECK(log == "b-");
    signal.notify();
    CHECK(log == "b-a+c+");
    loop.advance(2s);
    signal.notify();
    CHECK(log == "b-a+c+");
  }

  TEST_CASE("who waits again while being woken is left for the next time") {
    test::ManualLoop loop;
    Signal signal;
    int woken = 0;
    const auto forever = [](Signal& on, EventLoop& with, int& count) -> Task<void> {
      while (true) {
        (void)co_await on.wait(with);
        ++count;
      }
    };
    Waiting a{forever(signal, loop, woken)};
    a.start();
    signal.notify();
    CHECK(woken == 1);
    signal.notify();
    CHECK(woken == 2);
  }

  TEST_CASE("a waiter may notify: each is woken once") {
    test::ManualLoop loop;
    Signal signal;
    std::string log;
    const auto notifying = [](Signal& on, EventLoop& with, std::string& text) -> Task<void> {
      (void)co_await on.wait(with);
      text += "n";
      on.notify();
    };
    Waiting a{notifying(signal, loop, log)};
    Waiting b{wait_once(signal, loop, kNever, "b", log)};
    Waiting c{notifying(signal, loop, log)};
    Waiting d{wait_once(signal, loop, kNever, "d", log)};
    for (Waiting* one : {&a, &b, &c, &d}) one->start();
    signal.notify();
    CHECK(log == "nb+nd+");
  }

  TEST_CASE("a waiter may destroy others that wait") {
    test::ManualLoop loop;
    Signal signal;
    std::string log;
    std::vector<Waiting> others;
    const auto destroying = [](Signal& on, EventLoop& with, std::vector<Waiting>& gone) -> Task<void> {
      (void)co_await on.wait(with);
      gone.clear();
    };
    Waiting a{destroying(signal, loop, others)};
    a.start();
    for (const char* name : {"x", "y"}) {
      others.push_back({wait_once(signal, loop, loop.now() + 1s, name, log)});
      others.back().start();
    }
    signal.notify();
    loop.advance(2s);
    CHECK(log.empty());
  }

  TEST_CASE("a waiter may destroy the signal itself") {
    test::ManualLoop loop;
    auto signal = std::make_unique<Signal>();
    std::string log;
    const auto destroying = [](std::unique_ptr<Signal>& on, EventLoop& with) -> Task<void> {
      (void)co_await on->wait(with);
      on.reset();
    };
    Waiting a{destroying(signal, loop)};
    Waiting b{wait_once(*signal, loop, kNever, "b", log)};
    a.start();
    b.start();
    signal->notify();
    CHECK(signal == nullptr);
    CHECK(log == "b+");
  }

  TEST_CASE("a coroutine may be destroyed after the signal it waited for") {
    test::ManualLoop loop;
    std::string log;
    auto signal = std::make_unique<Signal>();
    Waiting a{wait_once(*signal, loop, kNever, "a", log)};
    Waiting b{wait_once(*signal, loop, kNever, "b", log)};
    a.start();
    b.start();
    signal.reset();
    b.task = {};
    a.task = {};
    CHECK(log.empty());
  }
}

}  // namespace weft
