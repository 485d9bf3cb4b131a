// EXPECT: compiles
#include "tests/compile_fail/prelude.h"

weft::Task<void> all_of_this_is_fine(weft::Broker& broker, weft::Service& service) {
  const User user{"bob", {"x"}};
  (void)co_await broker.call("math.add", {{"a", 1}, {"b", 2}});
  (void)co_await broker.call("math.greet", user);
  (void)co_await broker.call(kAdd, {1, 2});
  (void)co_await broker.call(kGreet, user);
  service.action("one", [](weft::Context&) { return 1; });
  service.action("two", [](weft::Context&, const User& u) { return u; });
}
