#include "broker/guards/outlier_ejection.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace weft {

using namespace std::chrono_literals;

namespace {

constexpr Instant kStart{1h};

OutlierPolicy policy(double percent = 50) {
  return {.enabled = true,
          .consecutive_failures = 3,
          .failure_rate = 0.5,
          .window = 10s,
          .min_request_count = 10,
          .ejection_time = 5s,
          .ejection_time_max = 12s,
          .max_ejection_percent = percent};
}

struct Group {
  explicit Group(std::size_t size, const OutlierPolicy& given = policy())
      : ejection(given), records(size, OutlierRecord(given)) {}

  [[nodiscard]] std::vector<OutlierRecord*> all() {
    std::vector<OutlierRecord*> list;
    for (OutlierRecord& record : records) list.push_back(&record);
    return list;
  }
  bool report(std::size_t which, bool failed, int times = 1) {
    bool ejected = false;
    const auto list = all();
    for (int i = 0; i < times; ++i) ejected = ejection.report(list, records[which], failed, now) || ejected;
    return ejected;
  }
  bool tick(Duration step) {
    now += step;
    return ejection.tick(all(), now);
  }
  [[nodiscard]] std::size_t ejected() const {
    return static_cast<std::size_t>(
        std::count_if(records.begin(), records.end(), [](const OutlierRecord& r) { return r.ejected; }));
  }

  OutlierEjection ejection;
  std::vector<OutlierRecord> records;
  Instant now = kStart;
};

// Every sequence of outcomes, passing time and leaving endpoints up to a depth, with what must hold after
// each.
struct Explorer {
  std::size_t steps = 0;
  std::size_t ejections = 0;
  std::size_t ended_early = 0;

  void explore(const Group& group, int depth) {
    if (depth == 0) return;
    for (std::size_t which = 0; which < group.records.size(); ++which) {
      for (const bool failed : {true, false}) {
        Group next = group;
        const OutlierRecord before = next.records[which];
        const bool was_full = group.ejected() >= group.ejection.ejections_max(group.records.size());
        const bool ejected = next.report(which, failed);
        const OutlierRecord& after = next.records[which];
        if (ejected) {
          ++ejections;
          REQUIRE(after.ejected);
          REQUIRE_FALSE(before.ejected);
          REQUIRE(failed);
          REQUIRE_FALSE(was_full);
          const Duration length = after.until - next.now;
          REQUIRE(length == std::min<Duration>(after.times * 2s, 3s));
        } else {
          REQUIRE(after.ejected == before.ejected);
          // Who is not ejected at two failures in a row was saved by the limit.
          if (failed && !before.ejected && before.consecutive >= 1) REQUIRE(was_full);
        }
        go_on(next, depth);
      }
    }
    {
      Group next = group;
      const bool ended = next.tick(1s);
      REQUIRE(ended == (next.ejected() < group.ejected()));
      for (const OutlierRecord& record : next.records) REQUIRE((!record.ejected || record.until > next.now));
      go_on(next, depth);
    }
    if (group.records.size() > 1) {
      for (std::size_t which = 0; which < group.records.size(); ++which) {
        Group next = group;
        next.records.erase(next.records.begin() + static_cast<std::ptrdiff_t>(which));
        if (next.ejection.enforce(next.all())) ++ended_early;
        go_on(next, depth);
      }
    }
  }
  void go_on(const Group& group, int depth) {
    ++steps;
    REQUIRE(group.ejected() <= group.ejection.ejections_max(group.records.size()));
    Group copy = group;
    REQUIRE((OutlierEjection::next_tick(copy.all()) != kNever) == (group.ejected() > 0));
    explore(group, depth - 1);
  }
};

}  // namespace

TEST_SUITE("outlier ejection") {
  TEST_CASE("failures in a row eject; a success in between starts the row anew") {
    Group group(4);
    CHECK_FALSE(group.report(0, true, 2));
    CHECK_FALSE(group.report(0, false));
    CHECK_FALSE(group.report(0, true, 2));
    CHECK(group.report(0, true));
    CHECK(group.records[0].ejected);
    CHECK(group.ejected() == 1);
  }

  TEST_CASE("a great share of failures ejects without any row") {
    Group group(4);
    for (int i = 0; i < 4; ++i) {
      CHECK_FALSE(group.report(1, true));
      CHECK_FALSE(group.report(1, false));
    }
    CHECK_FALSE(group.report(1, false));
    CHECK(group.report(1, true));  // Five of ten.
    Group healthy(4);
    for (int i = 0; i < 100; ++i) CHECK_FALSE(healthy.report(1, i % 3 == 0));
  }

  TEST_CASE("either way of finding outliers can be left out") {
    OutlierPolicy rows = policy();
    rows.min_request_count = 0;
    Group by_row(4, rows);
    for (int i = 0; i < 50; ++i) CHECK_FALSE(by_row.report(0, i % 2 == 0));
    CHECK(by_row.report(0, true, 3));
    OutlierPolicy rates = policy();
    rates.consecutive_failures = 0;
    Group by_rate(4, rates);
    CHECK_FALSE(by_rate.report(0, true, 9));
    CHECK(by_rate.report(0, true));
  }

  TEST_CASE("ejections grow, up to the longest, and are forgiven one by one") {
    Group group(2);
    const auto eject = [&] {
      REQUIRE(group.report(0, true, 3));
      return group.records[0].until - group.now;
    };
    CHECK(eject() == 5s);
    CHECK_FALSE(group.tick(4s));
    CHECK(group.tick(1s));
    CHECK_FALSE(group.records[0].ejected);
    CHECK(eject() == 10s);
    CHECK(group.tick(10s));
    CHECK(eject() == 12s);
    CHECK(group.tick(12s));
    CHECK(eject() == 12s);
    CHECK(group.tick(12s));
    group.now += 31s;  // Three of four are forgiven.
    CHECK(eject() == 10s);
    CHECK(group.tick(10s));
    group.now += 1h;
    CHECK(eject() == 5s);
  }

  TEST_CASE("never more than the given share is out, and who was saved by that goes when there is room") {
    for (const double percent : {10.0, 34.0, 50.0, 67.0, 100.0}) {
      CAPTURE(percent);
      Group group(10, policy(percent));
      for (std::size_t i = 0; i < 10; ++i) group.report(i, true, 20);
      CHECK(group.ejected() == static_cast<std::size_t>(percent / 10));
    }
    Group pair(2);
    CHECK(pair.report(0, true, 3));
    CHECK_FALSE(pair.report(1, true, 30));
    CHECK(pair.tick(5s));
    CHECK(pair.report(1, true));
    Group alone(1);
    CHECK_FALSE(alone.report(0, true, 100));
  }

  TEST_CASE("late word of calls to an ejected endpoint changes nothing") {
    Group group(4);
    REQUIRE(group.report(0, true, 3));
    const Instant until = group.records[0].until;
    CHECK_FALSE(group.report(0, true, 50));
    CHECK_FALSE(group.report(0, false, 50));
    CHECK(group.records[0].until == until);
    CHECK(group.tick(5s));
    CHECK_FALSE(group.report(0, true, 2));
  }

  TEST_CASE("whatever comes in whatever order, the limit and the lengths hold after every step") {
    for (const double percent : {33.0, 50.0, 67.0, 100.0}) {
      OutlierPolicy small = policy(percent);
      small.consecutive_failures = 2;
      small.min_request_count = 0;
      small.ejection_time = 2s;
      small.ejection_time_max = 3s;
      small.window = 4s;
      Explorer explorer;
      explorer.explore(Group(3, small), 5);
      CHECK(explorer.steps > 10'000);
      if (percent > 33) CHECK(explorer.ejections > 100);
      if (percent > 50 && percent < 100) CHECK(explorer.ended_early > 0);
    }
  }
}

}  // namespace weft
