#include "lib/uv/uv_loop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>

#include "tests/support/uv_world.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::UvWorld;

TEST_SUITE("uv loop") {
  TEST_CASE("timers due at one instant run in the order they were made") {
    UvWorld world;
    std::string ran;
    const Instant when = world.loop.now() + 2ms;
    world.loop.schedule(when, [&] { ran += 'a'; });
    world.loop.schedule(when, [&] { ran += 'b'; });
    world.loop.schedule(when - 1ms, [&] { ran += '0'; });
    world.loop.schedule(when, [&] {
      ran += 'c';
      world.wake();
    });
    CHECK(world.await([&] { return ran.size() == 4; }));
    CHECK(ran == "0abc");
  }

  TEST_CASE("a timer is never early and now() stands still within its turn") {
    UvWorld world;
    for (int i = 0; i < 20; ++i) {
      const Instant when = world.loop.now() + 1500us;
      bool ran = false;
      world.loop.schedule(when, [&] {
        const Instant now = world.loop.now();
        CHECK(now >= when);
        const auto start = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() == start) {
        }
        CHECK(world.loop.now() == now);
        ran = true;
        world.wake();
      });
      REQUIRE(world.await([&] { return ran; }));
    }
  }

  TEST_CASE("a timer in the past runs in the next turn, not in this one") {
    UvWorld world;
    std::string ran;
    world.loop.schedule(world.loop.now() - 1s, [&] {
      ran += 'a';
      world.loop.schedule(world.loop.now() - 1s, [&] {
        ran += 'c';
        world.wake();
      });
      world.loop.defer([&] { ran += 'b'; });
    });
    CHECK(ran.empty());
    CHECK(world.await([&] { return ran.size() == 3; }));
    CHECK(ran == "abc");
  }

  TEST_CASE("a cancelled timer does not run, and cancelling twice is no error") {
    UvWorld world;
    bool ran = false;
    const auto timer = world.loop.schedule(world.loop.now(), [&] { ran = true; });
    world.loop.cancel(timer);
    world.loop.cancel(timer);
    world.loop.cancel(0);
    bool later = false;
    world.loop.schedule(world.loop.now() + 1ms, [&] {
      later = true;
      world.wake();
    });
    CHECK(world.await([&] { return later; }));
    CHECK_FALSE(ran);
  }

  TEST_CASE("posts of many threads all run on the loop's thread, each thread's in order") {
    UvWorld world;
    constexpr int kThreads = 4;
    constexpr int kPosts = 2000;
    std::vector<std::vector<int>> seen(kThreads);
    int total = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kPosts; ++i) {
          world.loop.post([&, t, i] {
            CHECK(world.loop.is_current());
            seen[static_cast<std::size_t>(t)].push_back(i);
            if (++total == kThreads * kPosts) world.wake();
          });
        }
      });
    }
    CHECK(world.await([&] { return total == kThreads * kPosts; }));
    for (std::thread& thread : threads) thread.join();
    for (const auto& list : seen) {
      CHECK(list.size() == kPosts);
      CHECK(std::is_sorted(list.begin(), list.end()));
    }
  }

  TEST_CASE("deferred callbacks run before the loop waits again, also those deferred by them") {
    UvWorld world;
    int depth = 0;
    bool posted_ran = false;
    world.loop.post([&] {
      world.loop.defer([&] {
        ++depth;
        world.loop.defer([&] { ++depth; });
      });
      world.loop.post([&] {
        CHECK(depth == 2);
        posted_ran = true;
        world.wake();
      });
      CHECK(depth == 0);
    });
    CHECK(world.await([&] { return posted_ran; }));
  }

  TEST_CASE("a callback that defers itself for ever does not starve timers") {
    UvWorld world;
    bool done = false;
    struct Again {
      UvLoop& loop;
      bool& done;
      void operator()() {
        if (!done) loop.defer(Again{loop, done});
      }
    };
    world.loop.defer(Again{world.loop, done});
    world.loop.schedule(world.loop.now() + 1ms, [&] {
      done = true;
      world.wake();
    });
    CHECK(world.await([&] { return done; }));
  }

  TEST_CASE("blocking work runs elsewhere and reports on the loop's thread") {
    UvWorld world;
    std::thread::id worker;
    bool done = false;
    world.loop.run_blocking([&] { worker = std::this_thread::get_id(); },
                            [&] {
                              CHECK(world.loop.is_current());
                              done = true;
                              world.wake();
                            });
    CHECK(world.await([&] { return done; }));
    CHECK(worker != std::this_thread::get_id());
  }

  TEST_CASE("stop from another thread ends run, and a stop before run ends the next one at once") {
    UvWorld world;
    std::thread stopper([&] { world.loop.stop(); });
    world.loop.run();
    stopper.join();
    world.loop.stop();
    world.loop.run();
    CHECK(world.loop.is_current());
  }

  TEST_CASE("a loop that ran on another thread may be taken over and destroyed here") {
    UvLoop loop;
    bool ran = false;
    std::thread runner([&] {
      loop.post([&] {
        ran = true;
        loop.stop();
      });
      loop.run();
    });
    runner.join();
    CHECK(ran);
    CHECK_FALSE(loop.is_current());
    loop.take_over();
    CHECK(loop.is_current());
  }

  TEST_CASE("destroying the loop destroys what waits without running it") {
    auto token = std::make_shared<int>(0);
    int ran = 0;
    std::promise<void> release;
    std::promise<void> started;
    std::thread releaser;
    {
      UvLoop loop;
      loop.schedule(loop.now() + 1h, [token, &ran] { ++ran; });
      loop.post([token, &ran] { ++ran; });
      loop.defer([token, &ran] { ++ran; });
      loop.run_blocking(
          [token, &started, gate = release.get_future()]() mutable {
            started.set_value();
            gate.wait();
          },
          [token, &ran] { ++ran; });
      started.get_future().wait();
      releaser = std::thread([&] { release.set_value(); });
    }
    releaser.join();
    CHECK(ran == 0);
    CHECK(token.use_count() == 1);
  }

  TEST_CASE("what a destroyed callback owns may cancel timers and post") {
    struct Owner {
      UvLoop& loop;
      Timer timer;
      explicit Owner(UvLoop& owner_loop) : loop(owner_loop) {
        timer.set_after(loop, 1h, [] {});
      }
      ~Owner() {
        loop.post([] {});
        loop.defer([] {});
      }
    };
    UvLoop loop;
    loop.post([owner = std::make_unique<Owner>(loop)] {});
    loop.defer([owner = std::make_unique<Owner>(loop)] {});
  }
}

}  // namespace
}  // namespace weft
