#include "base/hash.h"

#include <bit>

namespace gimbal {

uint64_t hash_of(Bytes all) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
  constexpr size_t kStreams = 4, kStep = kStreams * sizeof(uint64_t);
  uint64_t stream[kStreams] = {1, 2, 3, 4};
  auto mix = [](uint64_t h, uint64_t word) { return std::rotl((h ^ word) * kPrime, 29); };
  const std::byte *at = all.data(), *end = at + all.size() / kStep * kStep;
  for (; at != end; at += kStep)
    for (size_t s = 0; s < kStreams; s++) stream[s] = mix(stream[s], read_le<uint64_t>(at + 8 * s));
  uint64_t hash = mix(kPrime, all.size());
  for (uint64_t s : stream) hash = mix(hash, s);
  for (size_t i = all.size() / kStep * kStep; i < all.size(); i++) hash = mix(hash, uint64_t(all[i]));
  return hash ^ hash >> 32;
}

}  // namespace gimbal
