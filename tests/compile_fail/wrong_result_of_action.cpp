// EXPECT: (cannot convert|no viable conversion|conversion from)
#include "tests/compile_fail/prelude.h"

weft::Task<void> run(weft::Broker& broker) {
  const std::string sum = co_await broker.call(kAdd, {1, 2});
}
