// EXPECT: a handler takes its params by value or by const reference
#include "tests/compile_fail/prelude.h"

void run(weft::Service& service) {
  service.action("x", [](weft::Context&, AddParams& params) { return params.a; });
}
