#include "lib/time/throttle.h"

#include <doctest/doctest.h>

namespace weft {

TEST_SUITE("throttle") {
  TEST_CASE("one passes in each pause, and the others are counted") {
    using namespace std::chrono_literals;
    Throttle throttle(1s);
    const Instant start{10s};
    CHECK(throttle.pass(start));
    CHECK(throttle.take_held() == 0);
    CHECK_FALSE(throttle.pass(start));
    CHECK_FALSE(throttle.pass(start + 999ms));
    CHECK(throttle.pass(start + 1s));
    CHECK(throttle.take_held() == 2);
    CHECK(throttle.take_held() == 0);
    CHECK_FALSE(throttle.pass(start + 1500ms));
  }
}

}  // namespace weft
