#include "tests/support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

// In a file of its own, so that the compiler sees no user of the operators.
namespace {
std::atomic<std::size_t> count{0};
}

void* operator new(std::size_t size) {
  ++count;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace weft {

std::size_t allocation_count() {
  return count;
}

}  // namespace weft
