#pragma once

namespace weft::detail {

// Prints the broken condition and aborts: an assert is our own mistake, never the world's doing.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace weft::detail

// On in every build. Bytes from a peer must never reach it.
#define WEFT_ASSERT(condition) \
  (static_cast<bool>(condition) ? void(0) : ::weft::detail::assertion_failed(#condition, __FILE__, __LINE__))
