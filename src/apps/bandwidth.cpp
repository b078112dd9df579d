#include "apps/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "base/format.h"

namespace gimbal {
namespace {

constexpr int kPasses = 6;  // the first one is for warming up

// Sixteen independent sums, and lines asked for ahead of their use: as many loads in flight as a core can
// have.
constexpr size_t kAhead = 2048 / sizeof(uint64_t);
uint64_t sum(const uint64_t* p, size_t n) {
  uint64_t lanes[16] = {};
  for (size_t i = 0; i + 16 <= n; i += 16) {
    __builtin_prefetch(p + i + kAhead);  // beyond the end it does nothing
    __builtin_prefetch(p + i + kAhead + 8);
    for (size_t j = 0; j < 16; j++) lanes[j] += p[i + j];
  }
  uint64_t all = 0;
  for (uint64_t lane : lanes) all += lane;
  return all;
}

}  // namespace

Result<Bandwidth> measure_read_bandwidth(int threads, uint64_t bytes) {
  const size_t part = size_t(bytes) / size_t(threads) / 4096 * 4096;
  const size_t whole = part * size_t(threads);
  void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Error{Code::OutOfMemory, format("no memory for measuring its speed ({} bytes)", whole), ""};
  madvise(memory, whole, MADV_HUGEPAGE);
  std::vector<std::thread> team;
  std::atomic<uint64_t> sink = 0;  // so that no sum can be left out
  std::barrier gate(threads + 1);
  double best = 0;
  for (int t = 0; t < threads; t++)
    team.emplace_back([&, t] {
      auto* mine = reinterpret_cast<uint64_t*>(static_cast<char*>(memory) + size_t(t) * part);
      std::fill(mine, mine + part / 8, uint64_t(t));
      for (int pass = 0; pass < kPasses; pass++) {
        gate.arrive_and_wait();
        sink += sum(mine, part / 8);
        gate.arrive_and_wait();
      }
    });
  for (int pass = 0; pass < kPasses; pass++) {
    gate.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    gate.arrive_and_wait();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (pass > 0) best = std::max(best, double(whole) / taken.count());
  }
  for (std::thread& t : team) t.join();
  munmap(memory, whole);
  return Bandwidth{best, whole, threads, kPasses - 1};
}

}  // namespace gimbal
