#pragma once

#include <cstddef>

namespace weft {

// Calls of operator new in this program so far.
[[nodiscard]] std::size_t allocation_count();
// Bytes that operator new has given out and not got back.
[[nodiscard]] std::size_t allocated_bytes();

}  // namespace weft
