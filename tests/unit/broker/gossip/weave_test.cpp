// The weave: its bytes, its rings, and small meshes of it under all that DESIGN.md says it withstands. The
// same scenarios run with thousands of nodes in tests/bench/membership_bench.

#include "broker/gossip/weave/weave.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/support/weave_scenarios.h"

using namespace std::chrono_literals;

namespace weft::test {
namespace {

using Index = WeaveSim::Index;

WeaveMessage full_message() {
  WeaveMessage message;
  message.ping = {7, 0x0123456789abcdefULL, 300, 9};
  message.pong = {8, 42};
  message.note = {{.name = "a", .number = 5, .instance = 3, .left = true}, 1500, 12};
  message.news = {
      {.name = "node-1", .number = 1000, .content = 7, .instance = 77, .info_bytes = 512, .online = true},
      {.name = "node-2", .number = 4, .instance = 78}};
  message.infos = {{.name = "x", .number = 2, .content = 2, .instance = 1, .info_bytes = 9, .online = true}};
  message.wants = {"p", "q"};
  message.accusation = {"z", 6};
  message.voucher = {"y", 7};
  message.sums = WeaveSums{1, 2, 3};
  message.differing = 0x8000000000000001ULL;
  message.get = 3;
  message.buckets = {1, message.news};
  return message;
}

std::string bytes_of(const WeaveMessage& message) {
  Buffer out;
  write(message, out);
  return std::string(out.view());
}

// A mesh of `count` that has come together.
void settle(WeaveSim& sim, std::size_t count) {
  REQUIRE(join_through_one(sim, count, 30s) < 30s);
  sim.run_for(5s);
}

}  // namespace

TEST_SUITE("weave message") {
  TEST_CASE("what is written is read again, every part of it") {
    const std::string bytes = bytes_of(full_message());
    WeaveMessage read_back;
    REQUIRE(read(bytes, read_back));
    CHECK(bytes_of(read_back) == bytes);
    CHECK(read_back.news.size() == 2);
    CHECK(read_back.news[0].content == 7);
    CHECK(read_back.note->head.left);
    CHECK(read_back.buckets->heads[1].name == "node-2");
  }

  TEST_CASE("a ping is laid out as DESIGN.md says") {
    WeaveMessage message;
    message.ping = {0x01020304, 0x1122334455667788ULL, 300, 0xaabbccdd};
    CHECK(
        bytes_of(message) ==
        std::string("\x01\x01\x01\x02\x03\x04\x11\x22\x33\x44\x55\x66\x77\x88\xac\x02\xaa\xbb\xcc\xdd", 20));
  }

  TEST_CASE("what is cut short, and other nonsense, is no message") {
    const std::string bytes = bytes_of(full_message());
    std::set<bool> outcomes;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      WeaveMessage message;
      outcomes.insert(read(std::string_view(bytes).substr(0, size), message));
    }
    CHECK(outcomes.contains(false));
    WeaveMessage message;
    CHECK_FALSE(read("", message));
    CHECK_FALSE(read("\x02", message));
    CHECK_FALSE(
        read(std::string_view("\x01\x04\xff\xff\xff\xff\x0f", 7), message));  // More heads than bytes.
    CHECK_FALSE(read(std::string_view("\x01\x07\x01", 3), message));
  }

  TEST_CASE("bytes drawn at random, and messages with bytes changed, do no harm") {
    SeededRandom random(5);
    const std::string good = bytes_of(full_message());
    Weave weave("a", "i", {}, random);
    const Instant now{1h};
    weave.start(now);
    for (int i = 0; i < 20'000; ++i) {
      std::string bytes = good;
      if (i % 2 == 0) bytes.resize(random.below(good.size()) + 1);
      for (std::size_t n = random.below(6) + 1; n > 0; --n) {
        bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
      }
      weave.receive("node-1", bytes, random.below(3), now + i * 1ms);
      weave.tick(now + i * 1ms);
      (void)weave.take_output();
    }
    CHECK(weave.roster().size() <= WeaveOptions{}.nodes_max);
  }

  TEST_CASE("base64 goes both ways and refuses what is none") {
    for (const std::string text : {"", "a", "ab", "abc", "abcd"}) {
      Buffer encoded;
      append_base64(text, encoded);
      Buffer decoded;
      REQUIRE(read_base64(encoded.view(), decoded));
      CHECK(std::string(decoded.view()) == text);
    }
    Buffer out;
    append_base64(std::string_view("\xfb\xff", 2), out);
    CHECK(out.view() == "+/8");
    CHECK_FALSE(read_base64("ab=d", out));
    CHECK_FALSE(read_base64("abcde", out));
  }
}

TEST_SUITE("weave roster") {
  TEST_CASE("all who know the same nodes agree on who observes whom, whatever order they learned them in") {
    std::vector<std::string> names;
    for (int i = 0; i < 50; ++i) names.push_back("n" + std::to_string(i));
    const auto make = [&](std::size_t self, std::uint64_t seed) {
      SeededRandom random(seed);
      Roster roster(names[self], 1);
      std::vector<std::string> order = names;
      for (std::size_t i = 0; i + 1 < order.size(); ++i)
        std::swap(order[i], order[i + random.below(order.size() - i)]);
      for (const std::string& name : order) {
        if (name == names[self]) continue;
        roster.set_online(roster.add(name),
                          {.name = name, .number = 3, .content = 3, .instance = 2, .online = true});
      }
      return roster;
    };
    const auto observers = [](const Roster& roster, std::string_view name) {
      std::set<std::string> result;
      for (const std::uint32_t each : roster.observers_of(roster.find(name)))
        result.insert(roster.at(each).name);
      return result;
    };
    const Roster a = make(0, 1);
    const Roster b = make(1, 2);
    CHECK(observers(a, "n7") == observers(b, "n7"));
    // And each observer counts it among its subjects.
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Roster roster = make(i, i);
      const bool watches = std::any_of(roster.subjects().begin(), roster.subjects().end(),
                                       [&](std::uint32_t each) { return roster.at(each).name == "n7"; });
      CHECK(watches == (names[i] != "n7" && observers(a, "n7").contains(names[i])));
    }
  }

  TEST_CASE("the sum tells what is online, not how it became so") {
    Roster a("self", 1);
    Roster b("self", 1);
    const auto x = a.add("x");
    a.set_online(x, {.name = "x", .number = 3, .content = 3, .instance = 2, .online = true});
    CHECK(a.sum() != b.sum());
    a.set_offline(x, 4, false, {});
    CHECK(a.sum() == b.sum());
    a.forget(x);
    CHECK(a.find("x") == Roster::kNone);
    CHECK(a.sums() == b.sums());
  }
}

TEST_SUITE("weave") {
  TEST_CASE("forty nodes find each other through one, and news of all kinds reaches all within its time") {
    WeaveSim sim(3);
    CHECK(join_through_one(sim, 40, 30s) <= 3s);
    sim.run_for(5s);
    const News news = measure_news(sim, 3);
    CHECK(percentile(news.service, 0.99) <= 150ms);
    CHECK(percentile(news.service, 1) <= 250ms);
    CHECK(percentile(news.newcomer, 0.99) <= 150ms);
    CHECK(percentile(news.newcomer, 1) <= 250ms);
    CHECK(percentile(news.newcomer_sees_all, 1) <= 1s);
    CHECK(percentile(news.dead, 1) <= 500ms);
    CHECK(percentile(news.hung, 0.99) <= 2500ms);
    CHECK(percentile(news.hung, 0) >= 1400ms);
    CHECK(percentile(news.hung_is_back, 1) <= 3s);
    CHECK(sim.wrong_removals() == 0);
  }

  TEST_CASE("at rest a node sends less than a KiB a second, in a small mesh and in a larger one") {
    WeaveSim small(1);
    settle(small, 30);
    const double in_small = bytes_at_rest(small, 20s);
    WeaveSim large(1);
    settle(large, 150);
    const double in_large = bytes_at_rest(large, 20s);
    CHECK(in_small <= 1024);
    CHECK(in_large <= 1024);
    CHECK(in_large <= 1.1 * in_small);
  }

  TEST_CASE("no torture removes a node without fault; faulty ones go and do not flap") {
    for (const std::size_t count : {20, 60}) {
      WeaveSim sim(count);
      settle(sim, count);
      for (const Torture kind : kTortures) {
        INFO(to_string(kind), " among ", count);
        const TortureOutcome outcome = torture(sim, kind, 70s);
        CHECK(outcome.wrong_removals == 0);
        CHECK(outcome.all_removed <= 30s);
        CHECK(outcome.returns_max <= 1);
        CHECK(outcome.recovered < 5min);
      }
    }
  }

  TEST_CASE("of two nodes one notices alone that the other hangs, and takes it back") {
    WeaveSim sim(1);
    settle(sim, 2);
    sim.freeze(1);
    CHECK(sim.run_until([&] { return !sim.sees(0, 1); }, 5s));
    sim.run_for(3s);
    sim.thaw(1);
    CHECK(sim.run_until([&] { return sim.converged(); }, 30s));
    CHECK(sim.sees(1, 0));
  }

  TEST_CASE("a process that pauses for a second is not removed, and removes nobody") {
    WeaveSim sim(4);
    settle(sim, 30);
    std::size_t changes = 0;
    sim.on_change = [&](Index, Index, bool, std::uint64_t) { ++changes; };
    for (Index node = 0; node < 30; ++node) {
      sim.freeze(node);
      sim.run_for(1s);
      sim.thaw(node);
      sim.run_for(1s);
    }
    CHECK(changes == 0);
  }

  TEST_CASE("when all pause together for ten seconds nobody is removed") {
    WeaveSim sim(4);
    settle(sim, 30);
    std::size_t changes = 0;
    sim.on_change = [&](Index, Index, bool, std::uint64_t) { ++changes; };
    for (Index node = 0; node < 30; ++node) sim.freeze(node);
    sim.run_for(10s);
    for (Index node = 0; node < 30; ++node) sim.thaw(node);
    sim.run_for(10s);
    CHECK(changes == 0);
  }

  TEST_CASE("who leaves is gone everywhere at once, by its own word") {
    WeaveSim sim(2);
    settle(sim, 30);
    const Instant since = sim.now();
    sim.leave(7);
    const auto times = sim.spread(7, WeaveSim::Wait::kGone, 1, since, 5s);
    CHECK(percentile(times, 1) <= 60ms);
    const Roster& roster = sim.weave(3).roster();
    CHECK(roster.at(roster.find(sim.name(7))).left);
  }

  TEST_CASE("a process that dies and starts again under its name outbids its own death") {
    WeaveSim sim(6);
    settle(sim, 30);
    sim.kill(11);
    sim.run_for(2s);
    const Instant since = sim.now();
    sim.restart(11, 4);
    const auto times = sim.spread(11, WeaveSim::Wait::kOnlineAs, 1, since, 10s);
    CHECK(percentile(times, 1) <= 1s);
    CHECK(sim.run_until([&] { return sim.converged(); }, 10s));
  }

  TEST_CASE("two halves that were cut apart come together again") {
    WeaveSim sim(9);
    settle(sim, 24);
    for (Index node = 0; node < 12; ++node) {
      sim.faults(node).side = 1;
      sim.set_faulty(node, true);
    }
    sim.run_for(30s);
    for (Index node = 0; node < 12; ++node) sim.faults(node).side = 0;
    CHECK(sim.run_until([&] { return sim.converged(); }, 3min, 100ms));
  }

  TEST_CASE("one seed is one run") {
    const auto trace = [](std::uint64_t seed) {
      WeaveSim sim(seed);
      (void)join_through_one(sim, 30, 30s);
      (void)torture(sim, Torture::kFrozenQuarter, 20s);
      return sim.trace();
    };
    CHECK(trace(1) == trace(1));
    CHECK(trace(1) != trace(2));
  }

  TEST_CASE("one that was told of many invented nodes knows no more than its limit") {
    WeaveOptions options;
    options.nodes_max = 50;
    SeededRandom random(1);
    Weave weave("a", "i", options, random);
    const Instant now{1h};
    weave.start(now);
    for (int i = 0; i < 500; ++i) {
      const std::string name = "invented-" + std::to_string(i);
      WeaveMessage message;
      message.news = {
          {.name = name, .number = 3, .content = 3, .instance = 1, .info_bytes = 9, .online = true}};
      weave.receive("liar", bytes_of(message), 0, now);
    }
    CHECK(weave.roster().size() == 50);
    // Nobody says more of them, so they make room again.
    for (int i = 0; i < 50; ++i) weave.tick(now + i * 400ms);
    CHECK(weave.roster().size() <= 2);
  }
}

}  // namespace weft::test
