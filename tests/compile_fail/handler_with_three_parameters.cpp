// EXPECT: a handler takes \(weft::Context&\) or \(weft::Context&, Params\)
#include "tests/compile_fail/prelude.h"

void run(weft::Service& service) {
  service.action("x", [](weft::Context&, int, int) { return 1; });
}
