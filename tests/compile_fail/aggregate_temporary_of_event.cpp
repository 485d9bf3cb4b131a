// EXPECT: use of deleted function .*Params
// ONLY: where the compiler destroys such a temporary twice
#include "tests/compile_fail/prelude.h"

void run(weft::Broker& broker) {
  broker.emit("user.created", User{"bob", {}});
}
