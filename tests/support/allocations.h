#pragma once

#include <cstddef>

namespace weft {

// Calls of operator new in this program so far.
[[nodiscard]] std::size_t allocation_count();

}  // namespace weft
