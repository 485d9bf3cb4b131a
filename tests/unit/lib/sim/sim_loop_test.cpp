#include "lib/sim/sim_loop.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/sim/sim_runtime.h"

namespace weft {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {
struct One {
  SimWorld world{1};
  SimHost& host = world.fabric().add_host();
  SimRuntime process{world, host};
  SimLoop& loop = process.loop();
};
}  // namespace

TEST_SUITE("sim loop") {
  TEST_CASE("posts run in order, deferred work at the end of its turn, time stands still in a turn") {
    One one;
    std::string order;
    one.loop.post([&] {
      order += 'a';
      one.loop.post([&] { order += 'd'; });
      one.loop.defer([&] {
        order += 'b';
        one.loop.defer([&] { order += 'c'; });
      });
    });
    one.loop.post([&] { order += '2'; });
    const Instant begin = one.loop.now();
    one.world.run_for(milliseconds(1));
    CHECK(order == "abc2d");
    CHECK(one.loop.now() == begin + milliseconds(1));
  }

  TEST_CASE("what is deferred between turns runs at the same virtual time") {
    One one;
    Instant ran{};
    one.loop.defer([&] { ran = one.loop.now(); });
    const Instant before = one.loop.now();
    one.world.run_for(seconds(1));
    CHECK(ran == before);
  }

  TEST_CASE("a loop is current in its own turns and between turns, not in another's") {
    SimWorld world(1);
    SimRuntime a(world, world.fabric().add_host());
    SimRuntime b(world, world.fabric().add_host());
    CHECK(a.loop().is_current());
    bool asked = false;
    a.loop().post([&] {
      asked = true;
      CHECK(a.loop().is_current());
      CHECK_FALSE(b.loop().is_current());
    });
    world.run_for(milliseconds(1));
    CHECK(asked);
  }

  TEST_CASE("timers run at their time, in order of making, and a cancelled one does not") {
    One one;
    std::string order;
    const Instant begin = one.loop.now();
    one.loop.schedule(begin + milliseconds(3), [&] { order += 'c'; });
    const auto gone = one.loop.schedule(begin + milliseconds(2), [&] { order += 'x'; });
    one.loop.schedule(begin + milliseconds(2), [&] {
      order += 'b';
      CHECK(one.loop.now() == begin + milliseconds(2));
    });
    one.loop.schedule(begin, [&] { order += 'a'; });
    one.loop.cancel(gone);
    one.world.run_for(milliseconds(10));
    CHECK(order == "abc");
  }

  TEST_CASE("blocking work runs outside the loop's turn that asked, its end comes when the worker is done") {
    One one;
    one.loop.set_blocking_time(milliseconds(30));
    const Instant begin = one.loop.now();
    Instant ended{};
    bool worked = false;
    one.loop.run_blocking([&] { worked = true; },
                          [&] {
                            CHECK(worked);
                            ended = one.loop.now();
                          });
    CHECK_FALSE(worked);
    one.world.run_for(seconds(1));
    CHECK(ended == begin + milliseconds(30));
  }

  TEST_CASE("a frozen process does nothing; thawed, it does all of it in order, at the time of the thaw") {
    One one;
    std::string order;
    const Instant begin = one.loop.now();
    one.process.freeze();
    one.loop.schedule(begin + milliseconds(20), [&] { order += 'b'; });
    one.loop.schedule(begin + milliseconds(10), [&] {
      order += 'a';
      CHECK(one.loop.now() == begin + milliseconds(100));
      one.loop.post([&] { order += 'd'; });
    });
    const auto gone = one.loop.schedule(begin + milliseconds(10), [&] { order += 'x'; });
    one.loop.schedule(begin + milliseconds(30), [&] { order += 'c'; });
    one.world.run_for(milliseconds(100));
    CHECK(order.empty());
    one.loop.cancel(gone);  // While it lies parked.
    one.process.thaw();
    one.world.run_for(milliseconds(1));
    CHECK(order == "abcd");
  }

  TEST_CASE("a slow process takes its turns one after another, each at its price") {
    One one;
    one.loop.set_turn_cost(milliseconds(10));
    std::vector<Duration> ran;
    for (int i = 0; i < 3; ++i) one.loop.post([&] { ran.push_back(one.world.elapsed()); });
    one.world.run_for(seconds(1));
    CHECK(ran == std::vector<Duration>{milliseconds(0), milliseconds(10), milliseconds(20)});
  }

  TEST_CASE("code that computes for long keeps its own process from working, and no other one") {
    SimWorld world(1);
    SimRuntime busy(world, world.fabric().add_host());
    SimRuntime idle(world, world.fabric().add_host());
    Duration busy_ran{};
    Duration idle_ran{};
    busy.loop().post([&] { busy.loop().spend(seconds(3)); });
    const auto soon = world.now() + milliseconds(1);
    busy.loop().schedule(soon, [&] { busy_ran = world.elapsed(); });
    idle.loop().schedule(soon, [&] { idle_ran = world.elapsed(); });
    world.run_for(seconds(5));
    CHECK(busy_ran == seconds(3));
    CHECK(idle_ran == milliseconds(1));
  }

  TEST_CASE("a dead process does nothing more, and what waited is destroyed") {
    One one;
    auto held = std::make_shared<int>(1);
    int runs = 0;
    one.loop.post([&runs, held] { ++runs; });
    one.loop.schedule(one.loop.now() + seconds(1), [&runs, held] { ++runs; });
    one.loop.defer([&runs, held] { ++runs; });
    one.process.kill();
    CHECK(held.use_count() == 1);
    CHECK(one.loop.schedule(one.loop.now(), [&runs] { ++runs; }) == 0);
    one.loop.post([&runs] { ++runs; });
    one.loop.defer([&runs] { ++runs; });
    one.world.run_for(seconds(5));
    CHECK(runs == 0);
  }

  TEST_CASE("a process may die inside its own turn") {
    One one;
    int runs = 0;
    one.loop.post([&] {
      one.loop.defer([&] { ++runs; });
      one.process.kill();
    });
    one.loop.post([&] { ++runs; });
    one.world.run_for(seconds(1));
    CHECK(runs == 0);
    CHECK(one.loop.is_dead());
  }

  TEST_CASE("the wall clock is the host's: skewed and jumping, while the monotonic one goes on") {
    One one;
    const std::int64_t wall = one.loop.wall_ms();
    const Instant now = one.loop.now();
    one.world.run_for(milliseconds(250));
    CHECK(one.loop.wall_ms() == wall + 250);
    one.host.jump_wall_clock(-seconds(60));
    CHECK(one.loop.wall_ms() == wall + 250 - 60000);
    CHECK(one.loop.now() == now + milliseconds(250));
    one.host.set_wall_skew(seconds(1));
    CHECK(one.loop.wall_ms() == wall + 250 + 1000);
  }

  TEST_CASE("a process whose clock runs fast has its timers early") {
    SimWorld world(1);
    SimRuntime fast(world, world.fabric().add_host(), {.clock_rate = 1.25});
    const Instant begin = fast.loop().now();
    Duration ran{};
    Instant seen{};
    fast.loop().schedule(begin + seconds(5), [&] {
      ran = world.elapsed();
      seen = fast.loop().now();
    });
    world.run_for(seconds(10));
    CHECK(ran >= milliseconds(3999));
    CHECK(ran <= milliseconds(4001));
    CHECK(seen >= begin + seconds(5));
  }
}

}  // namespace weft
