#include "broker/calls/pending_requests.h"

#include "lib/base/assert.h"

namespace weft {

namespace {

constexpr char kHex[] = "0123456789abcdef";

// Where the hyphens of a UUID stand.
constexpr bool is_hyphen(std::size_t at) {
  return at == 8 || at == 13 || at == 18 || at == 23;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::uint32_t PendingRequests::add(CallRecord* call, char* id) {
  std::uint32_t at = free_;
  if (at == kNone) {
    at = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    free_ = slots_[at].next_free;
  }
  Slot& slot = slots_[at];
  slot.call = call;
  ++slot.generation;
  ++size_;

  // The first half is the place, so that the first 16 digits alone are unique in this node's life.
  const std::uint64_t words[2] = {((std::uint64_t{slot.generation} << 32) | at) ^ mask_high_, mask_low_};
  std::size_t digit = 0;
  for (std::size_t i = 0; i < kIdSize; ++i) {
    if (is_hyphen(i)) {
      id[i] = '-';
      continue;
    }
    id[i] = kHex[(words[digit / 16] >> (60 - 4 * (digit % 16))) & 0xf];
    ++digit;
  }
  return at;
}

CallRecord* PendingRequests::find(std::string_view id) const {
  if (id.size() != kIdSize) return nullptr;
  std::uint64_t words[2] = {0, 0};
  std::size_t digit = 0;
  for (std::size_t i = 0; i < kIdSize; ++i) {
    if (is_hyphen(i)) {
      if (id[i] != '-') return nullptr;
      continue;
    }
    const int value = hex_digit(id[i]);
    if (value < 0) return nullptr;
    words[digit / 16] = (words[digit / 16] << 4) | static_cast<std::uint64_t>(value);
    ++digit;
  }
  if (words[1] != mask_low_) return nullptr;
  const std::uint64_t place = words[0] ^ mask_high_;
  const std::uint64_t at = place & 0xffffffff;
  if (at >= slots_.size()) return nullptr;
  const Slot& slot = slots_[at];
  return slot.generation == (place >> 32) ? slot.call : nullptr;
}

void PendingRequests::remove(std::uint32_t at) {
  Slot& slot = slots_[at];
  WEFT_ASSERT(slot.call != nullptr);
  slot.call = nullptr;
  slot.next_free = free_;
  free_ = at;
  --size_;
}

}  // namespace weft
