// The random numbers of sampling: xoshiro256** (D. Blackman and S. Vigna, "Scrambled linear pseudorandom
// number generators", 2021), its state filled by splitmix64 as its authors advise. Not the standard
// library's, because its numbers differ between implementations, and a seed must give the same text on
// every machine.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

namespace gimbal {

// Spreads one 64-bit seed over as many words as wanted (G. Steele et al., "Fast splittable pseudorandom
// number generators", 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

class Random {
 public:
  explicit Random(uint64_t seed) {
    SplitMix64 words(seed);
    for (uint64_t& s : state_) s = words.next();
  }
  // Continues from a known state, which must not be all zeros.
  explicit Random(std::array<uint64_t, 4> state) : state_(state) {}

  uint64_t next() {
    uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // A multiple of 2^-53 in [0, 1).
  double uniform() { return double(next() >> 11) * 0x1p-53; }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace gimbal
