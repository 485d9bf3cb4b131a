#include "lib/random/random.h"

#include <bit>

#include "lib/base/assert.h"

namespace weft {

namespace {
__extension__ using Wide = unsigned __int128;
}

std::size_t Random::below(std::size_t bound) {
  WEFT_ASSERT(bound > 0);
  // Multiply-shift (Lemire 2019) without the rejection step: the bias is below 2^-32 for the bounds used
  // here.
  return static_cast<std::size_t>((static_cast<Wide>(next()) * bound) >> 64);
}

double Random::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

SeededRandom::SeededRandom(std::uint64_t seed) {
  for (auto& word : state_) {  // splitmix64 spreads a small seed over the whole state.
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

std::uint64_t SeededRandom::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::string make_uuid(Random& random) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::uint64_t words[2] = {random.next(), random.next()};
  words[0] = (words[0] & ~0xf000ULL) | 0x4000ULL;
  words[1] = (words[1] & ~0xc000000000000000ULL) | 0x8000000000000000ULL;
  std::string text(36, '-');
  std::size_t at = 0;
  for (int nibble = 0; nibble < 32; ++nibble) {
    if (at == 8 || at == 13 || at == 18 || at == 23) ++at;
    const std::uint64_t word = words[nibble / 16];
    text[at++] = kHex[(word >> (60 - 4 * (nibble % 16))) & 0xf];
  }
  return text;
}

}  // namespace weft
