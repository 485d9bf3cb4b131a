#include "broker/calls/retry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "lib/error/error.h"

namespace weft {

using namespace std::chrono_literals;

namespace {

const Error kRetryable(ErrorClass::kRetryable, "try later");
const Error kFinal(ErrorClass::kClient, "never");

// The pauses between tries that all fail alike.
std::vector<Duration> pauses(RetryState state, const Error& error, bool node_lost = false,
                             std::uint64_t seed = 1) {
  SeededRandom random(seed);
  std::vector<Duration> all;
  while (const auto pause = state.next(error.retryable(), node_lost, random)) {
    all.push_back(*pause);
    REQUIRE(all.size() < 100);
  }
  return all;
}

RetryPolicy policy(int retries) {
  return {.enabled = true, .retries = retries, .delay = 20ms, .max_delay = 50ms, .factor = 2.0};
}

}  // namespace

TEST_SUITE("retry") {
  TEST_CASE("how often a failure is tried again") {
    struct Row {
      const char* what;
      bool enabled;
      std::optional<int> retries;
      const Error& error;
      std::size_t tries;
    };
    const Row rows[] = {
        {"the policy is off", false, std::nullopt, kRetryable, 0},
        {"the policy says 5", true, std::nullopt, kRetryable, 5},
        {"0 of the call goes before the policy", true, 0, kRetryable, 0},
        {"1 of the call goes before the policy", true, 1, kRetryable, 1},
        {"2 of the call without a policy", false, 2, kRetryable, 2},
        {"a negative number is none", true, -3, kRetryable, 0},
        {"an error that is not retryable, with a policy", true, std::nullopt, kFinal, 0},
        {"an error that is not retryable, with retries", true, 7, kFinal, 0},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      RetryPolicy given = policy(5);
      given.enabled = row.enabled;
      CHECK(pauses(RetryState(given, row.retries, false), row.error).size() == row.tries);
    }
  }

  TEST_CASE("pauses grow up to the ceiling, each drawn from the upper half of its range") {
    const Duration full[] = {20ms, 40ms, 50ms, 50ms, 50ms};
    std::vector<Duration> least(std::size(full), 1h);
    std::vector<Duration> most(std::size(full), 0ms);
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      const auto drawn = pauses(RetryState(policy(5), std::nullopt, false), kRetryable, false, seed);
      REQUIRE(drawn.size() == std::size(full));
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        CHECK(drawn[i] >= full[i] / 2);
        CHECK(drawn[i] <= full[i]);
        least[i] = std::min(least[i], drawn[i]);
        most[i] = std::max(most[i], drawn[i]);
      }
    }
    for (std::size_t i = 0; i < std::size(full); ++i) {  // The whole half is used.
      CHECK(least[i] < full[i] * 55 / 100);
      CHECK(most[i] > full[i] * 95 / 100);
    }
  }

  TEST_CASE("extreme policies give finite pauses") {
    RetryPolicy given = policy(60);
    given.factor = 1e300;
    for (const Duration pause : pauses(RetryState(given, std::nullopt, false), kRetryable)) {
      CHECK(pause >= 0ms);
      CHECK(pause <= 50ms);
    }
    given.delay = 0ms;
    for (const Duration pause : pauses(RetryState(given, std::nullopt, false), kRetryable))
      CHECK(pause == 0ms);
  }

  TEST_CASE("a lost node is no reason to pause, and counts as a try") {
    const auto drawn = pauses(RetryState(policy(3), std::nullopt, false), kRetryable, true);
    CHECK(drawn == std::vector<Duration>{0ms, 0ms, 0ms});
  }

  TEST_CASE("an idempotent call is moved from a lost node once, without being asked to retry") {
    CHECK(pauses(RetryState({}, std::nullopt, true), kRetryable, true).size() == 1);
    CHECK(pauses(RetryState({}, 0, true), kRetryable, true).size() == 1);
    CHECK(pauses(RetryState({}, std::nullopt, true), kRetryable, false).empty());
    CHECK(pauses(RetryState({}, std::nullopt, false), kRetryable, true).empty());
    CHECK(pauses(RetryState({}, std::nullopt, true), kFinal, true).empty());
    // Beside the tries that are asked for.
    CHECK(pauses(RetryState({}, 2, true), kRetryable, true).size() == 3);
  }

  TEST_CASE("an action's own policy goes before the broker's, and a number in the call before both") {
    RetryPolicy own = policy(2);
    own.delay = own.max_delay = 7ms;
    RetryState state(policy(5), std::nullopt, false);
    state.use(own);
    const auto drawn = pauses(state, kRetryable);
    CHECK(drawn.size() == 2);
    for (const Duration pause : drawn) CHECK(pause <= 7ms);
    RetryState asked(policy(5), 1, false);
    asked.use(own);
    CHECK(pauses(asked, kRetryable).size() == 1);
    own.enabled = false;
    state.use(own);
    CHECK(pauses(state, kRetryable).empty());
  }

  TEST_CASE("may_retry tells whether the params are needed again") {
    SeededRandom random(1);
    RetryState once({}, 1, false);
    CHECK(once.may_retry());
    (void)once.next(true, false, random);
    CHECK_FALSE(once.may_retry());
    RetryState idempotent({}, std::nullopt, true);
    CHECK(idempotent.may_retry());
    (void)idempotent.next(true, true, random);
    CHECK_FALSE(idempotent.may_retry());
    CHECK_FALSE(RetryState().may_retry());
  }
}

}  // namespace weft
