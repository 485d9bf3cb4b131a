#include "lib/uv/timer_queue.h"

#include <doctest/doctest.h>

#include <map>

#include "lib/random/random.h"

namespace weft {
namespace {

Instant at(int ms) {
  return Instant(std::chrono::milliseconds(ms));
}

TEST_SUITE("timer queue") {
  TEST_CASE("timers run in order of time, ties in order of creation") {
    TimerQueue queue;
    std::string ran;
    queue.add(at(3), [&] { ran += 'd'; });
    queue.add(at(1), [&] { ran += 'a'; });
    queue.add(at(2), [&] { ran += 'b'; });
    queue.add(at(2), [&] { ran += 'c'; });
    queue.add(at(9), [&] { ran += 'z'; });
    CHECK(queue.next() == at(1));
    queue.run_due(at(3));
    CHECK(ran == "abcd");
    CHECK(queue.next() == at(9));
  }

  TEST_CASE("a timer added by a timer waits for the next call, even when it is due") {
    TimerQueue queue;
    std::string ran;
    queue.add(at(1), [&] {
      ran += 'a';
      queue.add(at(0), [&] { ran += 'b'; });
    });
    queue.run_due(at(5));
    CHECK(ran == "a");
    queue.run_due(at(5));
    CHECK(ran == "ab");
  }

  TEST_CASE("a timer may cancel one that is due in the same call") {
    TimerQueue queue;
    std::string ran;
    TimerQueue::TimerId second = 0;
    queue.add(at(1), [&] {
      ran += 'a';
      CHECK(queue.cancel(second));
    });
    second = queue.add(at(1), [&] { ran += 'b'; });
    queue.add(at(1), [&] { ran += 'c'; });
    queue.run_due(at(1));
    CHECK(ran == "ac");
  }

  TEST_CASE("an id names one timer for ever: reusing its place does not revive it") {
    TimerQueue queue;
    int ran = 0;
    const auto first = queue.add(at(1), [&] { ran += 1; });
    CHECK(queue.cancel(first));
    const auto second = queue.add(at(1), [&] { ran += 10; });
    CHECK(first != second);
    CHECK_FALSE(queue.cancel(first));
    queue.run_due(at(1));
    CHECK(ran == 10);
    CHECK_FALSE(queue.cancel(second));
    CHECK_FALSE(queue.cancel(0));
  }

  TEST_CASE("random additions and cancellations agree with an ordered map") {
    SeededRandom random(7);
    TimerQueue queue;
    std::map<std::pair<Instant, int>, TimerQueue::TimerId> model;
    std::vector<int> ran;
    std::vector<int> expected;
    int order = 0;
    Instant now{};
    for (int step = 0; step < 20000; ++step) {
      const std::size_t dice = random.below(10);
      if (dice < 6 || model.empty()) {
        const Instant when = now + std::chrono::milliseconds(random.below(50));
        const int label = order++;
        model[{when, label}] = queue.add(when, [&ran, label] { ran.push_back(label); });
      } else if (dice < 8) {
        auto victim = std::next(model.begin(), static_cast<std::ptrdiff_t>(random.below(model.size())));
        REQUIRE(queue.cancel(victim->second));
        model.erase(victim);
      } else {
        now += std::chrono::milliseconds(random.below(10));
        queue.run_due(now);
        while (!model.empty() && model.begin()->first.first <= now) {
          expected.push_back(model.begin()->first.second);
          model.erase(model.begin());
        }
        REQUIRE(ran == expected);
        REQUIRE(queue.next() == (model.empty() ? kNever : model.begin()->first.first));
      }
    }
    CHECK(ran.size() > 1000);
  }
}

}  // namespace
}  // namespace weft
