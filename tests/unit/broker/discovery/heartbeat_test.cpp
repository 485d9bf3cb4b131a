#include "broker/discovery/heartbeat.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace weft;
using namespace std::chrono_literals;

namespace {

using Ids = std::vector<std::string>;

// A monitor with its catalog and a clock; time passes in the steps that the monitor itself asks for.
struct Setup {
  explicit Setup(const HeartbeatSettings& settings = {}, std::uint64_t seed = 1)
      : random(seed), monitor(nodes, settings, random, now) {}

  Node& join(std::string_view id, std::uint64_t seq = 1) {
    const Value info{
        {"seq", seq}, {"instanceID", "instance of " + std::string(id)}, {"services", Value::array()}};
    return *nodes.apply_info(id, info, now).node;
  }
  // What the monitor asked for during `span`, with `each` called before every tick.
  template <typename Each>
  HeartbeatMonitor::Output run(Duration span, Each&& each) {
    HeartbeatMonitor::Output all;
    const Instant end = now + span;
    while (monitor.next_tick() <= end) {
      now = std::max(now, monitor.next_tick());
      each();
      monitor.tick(now);
      auto output = monitor.take_output();
      if (output.send_heartbeat) beats.push_back(now);
      for (std::string& id : output.timed_out) all.timed_out.push_back(id);
      for (std::string& id : output.forget) all.forget.push_back(id);
    }
    now = end;
    return all;
  }
  HeartbeatMonitor::Output run(Duration span) {
    return run(span, [] {});
  }
  Ids asked_by(std::string_view sender, const Value& body) {
    monitor.receive(sender, body, now);
    return monitor.take_output().discover;
  }

  NodeCatalog nodes{"me", "my instance"};
  SeededRandom random;
  Instant now{1h};
  HeartbeatMonitor monitor;
  std::vector<Instant> beats;
};

const Value kBeat{{"cpu", 12}};

}  // namespace

TEST_SUITE("heartbeat monitor") {
  TEST_CASE("beats come in an interval of the node's own, near the one that is set") {
    std::vector<Duration> periods;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Setup setup({.interval = 10s}, seed);
      const Instant begin = setup.now;
      setup.run(60s);
      REQUIRE(setup.beats.size() >= 5);
      CHECK(setup.beats[0] - begin <= 10500ms);
      periods.push_back(setup.beats[1] - setup.beats[0]);
      CHECK(periods.back() >= 9500ms);
      CHECK(periods.back() <= 10500ms);
      CHECK(setup.beats[3] - setup.beats[2] == periods.back());
    }
    std::sort(periods.begin(), periods.end());
    CHECK(periods.front() < 9800ms);
    CHECK(periods.back() > 10200ms);
  }

  TEST_CASE("a node that beats each second is never dropped with a timeout of three") {
    Setup setup({.interval = 1s, .timeout = 3s});
    setup.join("b");
    Instant last = setup.now;
    const auto output = setup.run(600s, [&] {
      while (setup.now - last >= 1s) setup.monitor.receive("b", kBeat, last += 1s);
    });
    CHECK(output.timed_out.empty());
  }

  TEST_CASE("silence is noticed between the timeout and a quarter of it later, a second at most") {
    for (const auto& [timeout, late] :
         {std::pair<Duration, Duration>{3s, 750ms}, {30s, 1s}, {400ms, 100ms}, {4s, 1s}}) {
      Setup setup({.interval = 100ms, .timeout = timeout});
      setup.join("b");
      CHECK(setup.run(timeout).timed_out.empty());
      CHECK(setup.run(late).timed_out == Ids{"b"});
    }
  }

  TEST_CASE("an INFO is no heartbeat for a node that is online") {
    Setup setup({.interval = 1s, .timeout = 3s});
    setup.join("b");
    std::uint64_t seq = 1;
    const auto output = setup.run(4s, [&] { setup.join("b", ++seq); });
    CHECK(std::count(output.timed_out.begin(), output.timed_out.end(), "b") >= 1);
  }

  TEST_CASE("a silent node that beats again is asked for its INFO, and is back with that") {
    Setup setup({.interval = 1s, .timeout = 3s});
    Node& node = setup.join("b");
    setup.nodes.mark_offline(node, setup.now);
    CHECK(setup.asked_by("b", kBeat) == Ids{"b"});
    CHECK_FALSE(node.available);
    setup.now += 10s;
    CHECK(setup.nodes.apply_info("b", {{"seq", 1}, {"services", Value::array()}}, setup.now).reconnected);
    CHECK(setup.run(3s).timed_out.empty());  // With a full timeout before it.
    CHECK(setup.asked_by("b", kBeat).empty());
  }

  TEST_CASE("an unknown node is asked for its INFO, once a second at most") {
    Setup setup;
    CHECK(setup.asked_by("b", kBeat) == Ids{"b"});
    CHECK(setup.asked_by("b", kBeat).empty());
    CHECK(setup.asked_by("c", kBeat) == Ids{"c"});
    setup.now += 1s;
    CHECK(setup.asked_by("b", kBeat) == Ids{"b"});
    CHECK(setup.nodes.find("b") == nullptr);
  }

  TEST_CASE("another seq or instance is asked about, and the heartbeat does not count") {
    Setup setup;
    Node& node = setup.join("b", 4);
    const Instant joined = setup.now;
    const Value rows[] = {
        {{"seq", 5}}, {{"seq", 3}}, {{"instanceID", "other"}}, {{"seq", 4}, {"instanceID", "other"}}};
    for (const Value& body : rows) {
      setup.now += 1s;
      CHECK(setup.asked_by("b", body) == Ids{"b"});
      CHECK(node.last_heartbeat == joined);
    }
    const Value same[] = {{{"seq", 4}},
                          {{"instanceID", "instance"}},
                          {{"seq", 4.0}, {"instanceID", "instance of b"}},
                          {{"seq", nullptr}, {"instanceID", nullptr}},
                          Value(),
                          Value("nonsense"),
                          arr(1, 2)};
    for (const Value& body : same) {
      setup.now += 1s;
      CHECK(setup.asked_by("b", body).empty());
      CHECK(node.last_heartbeat == setup.now);
    }
  }

  TEST_CASE("the load is taken from a heartbeat when it makes sense") {
    Setup setup;
    Node& node = setup.join("b");
    const std::pair<Value, std::optional<int>> rows[] = {
        {{{"cpu", 12}}, 12},   {{{"cpu", 12.6}}, 13}, {Value::object(), 13}, {{{"cpu", nullptr}}, {}},
        {{{"cpu", 100}}, 100}, {{{"cpu", 101}}, {}},  {{{"cpu", 0}}, 0},     {{{"cpu", "12"}}, {}}};
    for (const auto& [body, cpu] : rows) {
      setup.monitor.receive("b", body, setup.now);
      CHECK(node.cpu == cpu);
    }
  }

  TEST_CASE("a node is forgotten when it has been silent for long, and not before") {
    Setup setup({.interval = 10s, .timeout = 30s, .clean_offline_nodes = 600s});
    Node& node = setup.join("b");
    setup.now += 30s;
    setup.nodes.mark_offline(node, setup.now);
    CHECK(setup.run(569s).forget.empty());
    CHECK(setup.run(3s).forget.front() == "b");
  }

  TEST_CASE("an interval of 0 turns beats, timeouts and clean-up off") {
    Setup setup({.interval = 0s});
    setup.join("b");
    CHECK(setup.monitor.next_tick() == kNever);
    CHECK(setup.asked_by("c", kBeat) == Ids{"c"});
  }

  TEST_CASE("after this process was held up, the waiting heartbeats are read before anybody is dropped") {
    Setup setup({.interval = 1s, .timeout = 3s});
    setup.join("b");
    setup.join("c");
    setup.run(1s);
    setup.now += 60s;  // Stopped, or blocked by a handler.
    setup.monitor.tick(setup.now);
    CHECK(setup.monitor.take_output().timed_out.empty());
    setup.monitor.receive("b", kBeat, setup.now);
    CHECK(setup.run(1s).timed_out.front() == "c");
  }

  TEST_CASE("a process that is always late still notices who is gone") {
    Setup setup({.interval = 1s, .timeout = 3s});
    setup.join("b");
    for (int i = 0; i < 3; ++i) setup.monitor.tick(setup.now += 5s);
    CHECK(setup.monitor.take_output().timed_out == Ids{"b"});
  }

  TEST_CASE("heartbeats of invented nodes cannot grow anything without bound") {
    Setup setup;
    std::size_t asked = 0;
    for (int i = 0; i < 50'000; ++i) asked += setup.asked_by("n" + std::to_string(i), kBeat).size();
    CHECK(asked == 10'000);
    CHECK(setup.asked_by(std::string(1000, 'x'), kBeat).empty());
    CHECK(setup.asked_by("", kBeat).empty());
    setup.run(5s);
    CHECK(setup.asked_by("real", kBeat) == Ids{"real"});
  }
}
