// EXPECT: static(_assert| assertion) failed
#include "tests/compile_fail/prelude.h"

struct Elsewhere {
  int get(weft::Context&) { return 1; }
};

void run(weft::Service& service) {
  service.action("x", &Elsewhere::get);
}
