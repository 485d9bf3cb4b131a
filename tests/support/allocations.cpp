#include "tests/support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

// In a file of its own, so that the compiler sees no user of the operators.
namespace {

std::atomic<std::size_t> count{0};
std::atomic<std::size_t> live{0};

void* note(void* memory) {
  if (memory != nullptr) live += malloc_usable_size(memory);
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) live -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  ++count;
  if (void* memory = note(std::malloc(size == 0 ? 1 : size))) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return note(std::malloc(size == 0 ? 1 : size));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}

namespace weft {

std::size_t allocation_count() {
  return count;
}

std::size_t allocated_bytes() {
  return live;
}

}  // namespace weft
