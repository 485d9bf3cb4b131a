// EXPECT: a handler gives a Value, a Payload, a type described with WEFT_FIELDS
#include "tests/compile_fail/prelude.h"

void run(weft::Service& service) {
  service.action("x", [](weft::Context&) { return Undescribed{}; });
}
