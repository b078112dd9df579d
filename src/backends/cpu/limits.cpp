#include "backends/cpu/thread_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/layout.h"
#include "backends/cpu/peak_loops.h"

#define CPU_VARIANT_ROW(name, needs)    \
  namespace name {                      \
  extern const CpuPeakLoops peak_loops; \
  }
#include "variants.inc"
#undef CPU_VARIANT_ROW

namespace gimbal::cpu {
namespace {

struct InstructionSet {
  const char* name;
  uint32_t needs;
  const CpuPeakLoops* loops;
};
const InstructionSet kInstructionSets[] = {
#define CPU_VARIANT_ROW(name, needs) {#name, uint32_t(needs), &::name::peak_loops},
#include "variants.inc"
#undef CPU_VARIANT_ROW
};

constexpr uint64_t kHugePage = 2 << 20;
constexpr uint64_t kBuffer = 1 << 30;  // or several times the largest cache
constexpr int kPasses = 4;             // at each distance of prefetching
constexpr int kComputePasses = 12;
constexpr double kComputeSeconds = 0.01;  // of one pass, at least

// Seconds of job(member) on all workers together, including start and synchronization.
template <class Job>
double seconds_of(ThreadPool& pool, Job job) {
  const auto begin = std::chrono::steady_clock::now();
  pool.run(job);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One load per cache line: the whole line arrives, and the core has nothing else to do. Lines are prefetched
// `ahead` bytes before their use; beyond the end that has no effect.
constexpr size_t kLine = 64, kAtOnce = 8 * kLine;
uint64_t read(const unsigned char* p, size_t n, size_t ahead) {
  uint64_t even = 0, odd = 0;
  for (size_t i = 0; i < n; i += kAtOnce)
    for (size_t j = i; j < i + kAtOnce; j += 2 * kLine) {
      __builtin_prefetch(p + j + ahead), __builtin_prefetch(p + j + kLine + ahead);
      even += *reinterpret_cast<const uint64_t*>(p + j);
      odd += *reinterpret_cast<const uint64_t*>(p + j + kLine);
    }
  return even + odd;
}

double read_speed(ThreadPool& pool, uint64_t bytes) {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or -1: unknown
  if (bytes == 0) bytes = std::max(kBuffer, 4 * uint64_t(std::max(cache, 0l)));
  bytes = std::min(bytes, memory().available / 2);
  const auto part = size_t(up(int64_t(bytes / uint64_t(pool.size())), int64_t(kHugePage))),
             whole = part * size_t(pool.size());
  if (part == 0) throw std::bad_alloc();
  void* mapped = mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* begin = reinterpret_cast<unsigned char*>(up(int64_t(uintptr_t(mapped)), int64_t(kHugePage)));
  madvise(begin, whole, MADV_HUGEPAGE);
  // The worker that reads a page also touches it first, so that the page is in the worker's local memory.
  pool.run([&](int m) { std::fill_n(begin + size_t(m) * part, part, static_cast<unsigned char>(m + 1)); });
  std::atomic<uint64_t> sink = 0;  // so that no sum can be left out
  double best = 1e9;
  for (int pass = 0; pass < kPasses; pass++)
    for (size_t ahead : {1024, 2048, 4096})
      best = std::min(best,
                      seconds_of(pool, [&](int m) { sink += read(begin + size_t(m) * part, part, ahead); }));
  munmap(mapped, whole + kHugePage);
  return double(whole) / best;
}

// Operations per second of `loop`, which does `operations` in a round.
template <class Loop>
double compute_speed(ThreadPool& pool, Loop loop, int32_t operations) {
  int64_t rounds = 1000;
  while (seconds_of(pool, [&](int) { loop(rounds); }) < kComputeSeconds) rounds *= 2;
  double best = 1e9;
  for (int pass = 0; pass < kComputePasses; pass++)
    best = std::min(best, seconds_of(pool, [&](int) { loop(rounds); }));
  return double(rounds) * operations * pool.size() / best;
}

}  // namespace

void measure_limits(uint32_t features, ThreadPool& pool, uint64_t bytes, gimbal_limits& out) {
  const InstructionSet* best = &kInstructionSets[0];
  for (const InstructionSet& s : kInstructionSets)
    if (!(s.needs & ~features) && s.loops->rank >= best->loops->rank) best = &s;
  out.read_bytes_per_second = read_speed(pool, bytes);
  out.int8_ops_per_second = compute_speed(pool, best->loops->int8, best->loops->int8_operations);
  out.fp32_ops_per_second = compute_speed(pool, best->loops->fp32, best->loops->fp32_operations);
  out.instruction_set = best->name;
  out.threads = uint32_t(pool.size());
}

}  // namespace gimbal::cpu
