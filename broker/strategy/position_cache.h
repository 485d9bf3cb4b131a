#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Remembers the ring positions of keys that are in use: a hit saves hashing the key. Holds at most `capacity`
// keys of up to kKeyBytesMax bytes; longer ones are not kept. A hit allocates nothing.
//
// What makes room is found by the clock algorithm: the first key not asked for since the hand last passed it.
// That comes close to the least recently used one, and a hit writes one flag instead of relinking a list.
class PositionCache {
 public:
  static constexpr std::size_t kKeyBytesMax = 256;

  explicit PositionCache(std::size_t capacity) : capacity_(capacity) {}

  // 0 when unknown.
  [[nodiscard]] std::uint64_t find(std::string_view key);
  // Of a key that is not in it.
  void insert(std::string_view key, std::uint64_t position);
  void clear();
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  struct Entry {
    std::string key;
    std::uint64_t position = 0;
    std::size_t hash = 0;
    Index next_in_bucket = kNone;
    bool used = false;  // Asked for since the hand passed.
  };

  void put_in_bucket(Index index);
  void take_from_bucket(Index index);
  Index take_unused();
  void grow_buckets();

  std::size_t capacity_;
  std::vector<Entry> entries_;
  std::vector<Index> buckets_;  // A power of two of them, at least as many as entries.
  Index hand_ = 0;
};

}  // namespace weft
