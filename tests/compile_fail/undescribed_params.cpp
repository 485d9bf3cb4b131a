// EXPECT: (no matching (member )?function for call to .*call|could not convert)
#include "tests/compile_fail/prelude.h"

weft::Task<void> run(weft::Broker& broker) {
  (void)co_await broker.call("math.add", Undescribed{1});
}
