#include "lib/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace weft::detail {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "weft: assertion failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace weft::detail
