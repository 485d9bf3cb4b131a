#include "lib/sim/sim_event_queue.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "lib/random/random.h"

namespace weft {

using std::chrono::milliseconds;

namespace {

constexpr Instant kBegin{std::chrono::seconds(5)};

std::string run_all(SimEventQueue& queue, Instant limit = kNever) {
  for (auto slot = queue.pop(limit); slot != SimEventQueue::kNone; slot = queue.pop(limit))
    queue.take(slot)();
  return {};
}

}  // namespace

TEST_SUITE("sim event queue") {
  TEST_CASE("events run by time, and at one time by order of creation") {
    SimEventQueue queue(kBegin);
    SimEventQueue::Owner owner;
    std::string order;
    queue.add(kBegin + milliseconds(2), owner, [&] { order += 'c'; });
    queue.add(kBegin + milliseconds(1), owner, [&] {
      order += 'a';
      // Made while time stands at 1 ms: behind what was made for 1 ms before.
      queue.add(queue.now(), owner, [&] { order += 'x'; });
    });
    queue.add(kBegin + milliseconds(1), owner, [&] { order += 'b'; });
    queue.add(kBegin - milliseconds(9), owner, [&] { order += '0'; });  // Past: now.
    run_all(queue);
    CHECK(order == "0abxc");
    CHECK(queue.now() == kBegin + milliseconds(2));
    CHECK(queue.size() == 0);
  }

  TEST_CASE("pop stops at its limit and does not move time beyond the last event") {
    SimEventQueue queue(kBegin);
    SimEventQueue::Owner owner;
    queue.add(kBegin + milliseconds(5), owner, [] {});
    CHECK(queue.pop(kBegin + milliseconds(4)) == SimEventQueue::kNone);
    CHECK(queue.now() == kBegin);
    CHECK(queue.pop(kBegin + milliseconds(5)) != SimEventQueue::kNone);
  }

  TEST_CASE("a cancelled event does not run, wherever it waits, and a stale id harms nobody") {
    SimEventQueue queue(kBegin);
    SimEventQueue::Owner owner;
    std::string order;
    const auto later = queue.add(kBegin + milliseconds(1), owner, [&] { order += 'l'; });
    const auto now = queue.add(kBegin, owner, [&] { order += 'n'; });
    queue.cancel(later);
    queue.cancel(now);
    CHECK(queue.size() == 0);
    queue.add(kBegin + milliseconds(1), owner, [&] { order += 'k'; });  // May lie in the same slot.
    queue.cancel(later);
    queue.cancel(now);
    queue.cancel(0);
    queue.cancel(UINT64_MAX);
    run_all(queue);
    CHECK(order == "k");
  }

  TEST_CASE("a parked event can still be cancelled, and taken once") {
    SimEventQueue queue(kBegin);
    SimEventQueue::Owner owner;
    int runs = 0;
    const auto first = queue.add(kBegin, owner, [&] { ++runs; });
    queue.add(kBegin, owner, [&] { ++runs; });
    const auto slot_a = queue.pop(kNever);
    queue.park(slot_a);
    const auto slot_b = queue.pop(kNever);
    queue.park(slot_b);
    queue.cancel(first);
    CHECK_FALSE(static_cast<bool>(queue.take(slot_a)));
    auto callback = queue.take(slot_b);
    REQUIRE(static_cast<bool>(callback));
    callback();
    CHECK(runs == 1);
    CHECK(queue.size() == 0);
  }

  TEST_CASE("an owner's events go with it, those of others stay") {
    SimEventQueue queue(kBegin);
    SimEventQueue::Owner owner;
    SimEventQueue::Owner other;
    std::string order;
    for (int i = 0; i < 5; ++i) {
      queue.add(kBegin + milliseconds(i), owner, [&] { order += 'x'; });
      queue.add(kBegin + milliseconds(i), other, [&] { order += 'o'; });
    }
    queue.cancel_all(owner);
    run_all(queue);
    CHECK(order == "ooooo");
  }

  TEST_CASE("thousands of random adds and cancels come out as a sorted map says") {
    SimEventQueue queue(kBegin);
    SimEventQueue::Owner owner;
    SeededRandom random(7);
    std::map<std::pair<Instant, int>, SimEventQueue::EventId> expected;
    std::vector<int> ran;
    for (int i = 0; i < 20000; ++i) {
      const Instant when = kBegin + milliseconds(1 + static_cast<int>(random.below(500)));
      expected[{when, i}] = queue.add(when, owner, [&ran, i] { ran.push_back(i); });
      if (random.below(3) == 0) {
        auto victim = expected.lower_bound({kBegin + milliseconds(static_cast<int>(random.below(500))), 0});
        if (victim == expected.end()) continue;
        queue.cancel(victim->second);
        expected.erase(victim);
      }
    }
    CHECK(queue.size() == expected.size());
    run_all(queue);
    std::vector<int> wanted;
    for (const auto& [key, id] : expected) wanted.push_back(key.second);
    CHECK(ran == wanted);
  }
}

}  // namespace weft
