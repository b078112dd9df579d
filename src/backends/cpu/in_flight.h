// A chunk that a worker computes in its own scratch memory. If the system preempts the worker, an idle one
// computes the chunk again and the step continues; the first to finish publishes the values.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gimbal::cpu {

struct Chunk {
  size_t range;           // the range that contains its rounds
  int64_t round, rounds;  // first round, and number of rounds
};

// One per worker. Every access is relaxed, because this word synchronizes no data: a chunk's inputs were
// complete before its level began, and its outputs are published by LevelState::items_left. All chunks of a
// step are distinct, so a cleared word does not recur within a step (no ABA problem).
class alignas(64) InFlight {
 public:
  static constexpr size_t kMaxRange = 0xffffffff;
  static constexpr int64_t kMaxRound = 0xffffff, kMaxRounds = 64;

  void begin(const Chunk& c) { word_.store(pack(c), std::memory_order_relaxed); }
  std::optional<Chunk> chunk() const {
    const uint64_t w = word_.load(std::memory_order_relaxed);
    if (!w) return std::nullopt;
    return Chunk{size_t(w >> 32), int64_t(w >> 8 & uint64_t(kMaxRound)), int64_t(w & 0xff)};
  }
  // Claims the right to publish this chunk's results; succeeds for one thread only.
  bool claim(const Chunk& c) {
    uint64_t expected = pack(c);
    return word_.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }

 private:
  static uint64_t pack(const Chunk& c) {  // never 0, because `rounds` is not
    return uint64_t(c.range) << 32 | uint64_t(c.round) << 8 | uint64_t(c.rounds);
  }
  std::atomic<uint64_t> word_{0};
};

}  // namespace gimbal::cpu
