#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft {

// A source of random numbers, passed in: the real one is seeded from the system, a simulation from its seed.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;

  // Uniform in [0, bound); bound > 0.
  std::size_t below(std::size_t bound);
  // Uniform in [0, 1).
  double uniform();
};

// xoshiro256** (Blackman, Vigna 2018): fast, seeded, the same on every machine. Not for secrets.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t next() override;

 private:
  std::uint64_t state_[4];
};

// A version 4 UUID as text, 36 characters.
[[nodiscard]] std::string make_uuid(Random& random);

}  // namespace weft
