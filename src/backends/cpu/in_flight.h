// A chunk that a worker computes in scratch memory of its own. Should the system preempt the worker, an idle
// one computes the chunk again, and the step goes on; whoever ends first publishes the values.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gimbal::cpu {

struct Chunk {
  size_t range;           // whose rounds it takes
  int64_t round, rounds;  // the first, and how many
};

// One for each worker. Every access is relaxed: nothing is handed over through this word. What a chunk reads
// was complete before its level began, and what it writes is handed over by LevelState::items_left. No two
// chunks of a step are equal, so within a step a word that was cleared does not come back.
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
  // Asks for the right to publish what was computed of this chunk: given to one thread.
  bool claim(const Chunk& c) {
    uint64_t expected = pack(c);
    return word_.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }

 private:
  static uint64_t pack(const Chunk& c) {  // never 0, for `rounds` is not
    return uint64_t(c.range) << 32 | uint64_t(c.round) << 8 | uint64_t(c.rounds);
  }
  std::atomic<uint64_t> word_{0};
};

}  // namespace gimbal::cpu
