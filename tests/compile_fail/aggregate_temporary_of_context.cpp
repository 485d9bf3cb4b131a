// EXPECT: use of deleted function .*call
// ONLY: where the compiler destroys such a temporary twice
#include "tests/compile_fail/prelude.h"

weft::Task<void> run(weft::Context& context) {
  (void)co_await context.call(kGreet, {"bob", {}});
}
