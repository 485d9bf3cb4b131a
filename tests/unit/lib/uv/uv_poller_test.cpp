#include "lib/uv/uv_poller.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/support/uv_world.h"

namespace weft {
namespace {

using test::UvWorld;

struct Pair {
  Pair() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0); }
  ~Pair() {
    for (const int end : ends) close(end);
  }
  std::array<int, 2> ends{};
};

struct Counter final : Poller::Handler {
  explicit Counter(UvWorld& owner) : world(owner) {}
  void on_readable() override {
    ++readable;
    if (during_readable) during_readable();
    world.wake();
  }
  void on_writable() override {
    ++writable;
    world.wake();
  }
  UvWorld& world;
  int readable = 0;
  int writable = 0;
  UniqueFunction<void()> during_readable;
};

TEST_SUITE("uv poller") {
  TEST_CASE("a watch tells of what it is asked for, again and again") {
    UvWorld world;
    UvPoller poller(world.loop);
    Pair pair;
    Counter counter(world);
    auto watch = poller.watch(pair.ends[0], counter);
    REQUIRE(watch != nullptr);
    REQUIRE(write(pair.ends[1], "x", 1) == 1);
    world.turn(3);
    CHECK(counter.readable + counter.writable == 0);
    watch->set_interest(true, false);
    CHECK(world.await([&] { return counter.readable >= 2; }));
    CHECK(counter.writable == 0);
    watch->set_interest(false, true);
    const int readable = counter.readable;
    CHECK(world.await([&] { return counter.writable >= 2; }));
    CHECK(counter.readable == readable);
  }

  TEST_CASE("a handler may destroy its watch from inside, and the descriptor stays its owner's") {
    UvWorld world;
    UvPoller poller(world.loop);
    Pair pair;
    world.turn();
    const int before = test::open_descriptors();
    Counter counter(world);
    auto watch = poller.watch(pair.ends[0], counter);
    watch->set_interest(true, true);
    counter.during_readable = [&] { watch.reset(); };
    REQUIRE(write(pair.ends[1], "x", 1) == 1);
    REQUIRE(world.await([&] { return watch == nullptr; }));
    CHECK(counter.writable == 0);
    CHECK(test::open_descriptors() == before);
    char byte = 0;
    CHECK(read(pair.ends[0], &byte, 1) == 1);
  }

  TEST_CASE("a hang-up shows") {
    UvWorld world;
    UvPoller poller(world.loop);
    Pair pair;
    Counter counter(world);
    auto watch = poller.watch(pair.ends[0], counter);
    watch->set_interest(true, false);
    shutdown(pair.ends[1], SHUT_RDWR);
    CHECK(world.await([&] { return counter.readable > 0; }));
  }

  TEST_CASE("a bad descriptor gives no watch") {
    UvWorld world;
    UvPoller poller(world.loop);
    Counter counter(world);
    CHECK(poller.watch(-1, counter) == nullptr);
  }
}

}  // namespace
}  // namespace weft
