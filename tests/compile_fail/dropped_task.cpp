// EXPECT: (nodiscard|unused-result|unused-value)
#include "tests/compile_fail/prelude.h"

void run(weft::Broker& broker) {
  broker.stop();
}
