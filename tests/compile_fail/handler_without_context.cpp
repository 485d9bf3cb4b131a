// EXPECT: a handler's first parameter is weft::Context&
#include "tests/compile_fail/prelude.h"

void run(weft::Service& service) {
  service.action("x", [](const AddParams& params, int) { return params.a; });
}
