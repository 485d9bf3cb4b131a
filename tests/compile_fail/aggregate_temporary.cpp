// EXPECT: use of deleted function .*Params
// ONLY: where the compiler destroys such a temporary twice
#include "tests/compile_fail/prelude.h"

weft::Task<void> run(weft::Broker& broker) {
  (void)co_await broker.call("math.greet", User{"bob", {}});
}
