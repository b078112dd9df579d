// Cycles that products of q4_0 with some rows take for 8 rows, 32 columns and a tile (16 outputs), walks over
// tiles included: weights come from 600 MB of memory, in large pages and in small ones; by one thread and by
// two. Run it while nothing else runs.
//   g++ -std=c++20 -O3 -DNDEBUG -w -DCPU_VARIANT=avx512vnni -Isrc -Isrc/backends/cpu/variants/avx512
//   -fno-math-errno
//     -fno-exceptions -ffp-contract=off -fno-tree-vectorize -fno-tree-slp-vectorize
//     -fno-tree-loop-distribute-patterns -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c
//     -mprefer-vector-width=512 -pthread bench/products.cpp -o /tmp/products && /tmp/products
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "tensor/activations.h"
#include "tensor/block_encode.h"
#include "tensor/half.h"
#include "vec.h"

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::Format, gimbal::Levels, gimbal::Number, gimbal::Scales, gimbal::format_of;
using gimbal::OpKind, gimbal::kChunk, gimbal::kPagePositions;

#include "backends/cpu/kernels/few_rows.h"
#include "backends/cpu/kernels/matmul.h"

using W = Weights32<DType::Q4_0>;
constexpr int64_t kBytes = int64_t(600) << 20;
constexpr int kMostRows = 128, kMostColumns = 8192, kMostOutputs = 8192, kRepetitions = 5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A chain of additions takes one cycle for each.
double seconds_of_a_cycle() {
  double best = 1;
  for (int r = 0; r < 50; r++) {
    long n = 10000, x = 0;
    const double begin = now();
    while (n--) asm volatile("add $1, %0\nadd $1, %0\nadd $1, %0\nadd $1, %0\nadd $1, %0" : "+r"(x));
    best = std::min(best, (now() - begin) / 50000);
  }
  return best;
}

// Weights that are no weights, but are not all alike either; scales are small numbers.
uint8_t* weights(bool large_pages) {
  void* p = mmap(nullptr, size_t(kBytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, size_t(kBytes), large_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (int64_t i = 0; i < kBytes; i += 8) {
    const uint64_t word = uint64_t(i) * 0x9E3779B97F4A7C15ull & 0x3f3f3f3f3f3f3f3full;
    std::memcpy(static_cast<uint8_t*>(p) + i, &word, 8);
  }
  return static_cast<uint8_t*>(p);
}

void product(const CpuTask& t, int64_t begin, int64_t end) {
  t.rows <= kMaxFewRows ? matmul_few<W, FewRows32<W>>(t, begin, end)
                        : matmul<OneRow32, W, Rows32<W>>(t, begin, end);
}

double cycles(const uint8_t* from, int rows, int outputs, int columns, int threads, double cycle) {
  static std::vector<uint8_t> x(size_t(kMostRows) * kMostColumns * 2, 3);
  static std::vector<float> y(size_t(kMostRows) * kMostOutputs);
  const int64_t bytes = kLayout<W::type>.tile_bytes(columns) * (outputs / 16);
  double best = 1e9;
  for (int r = 0; r < kRepetitions; r++) {
    std::atomic<int> ready{0};
    double took = 0;
    auto share = [&](int which) {
      gimbal_value w{}, all{};
      w.rank = 2, w.dim[0] = columns, w.dim[1] = outputs;
      gimbal_op op{};
      op.inputs = 2;
      CpuTask t{};
      t.op = &op, t.out = t.in[1] = &all, t.in[0] = &w, t.rows = rows;
      t.x[1] = x.data(), t.y = reinterpret_cast<unsigned char*>(y.data());
      for (ready++; ready < threads;) {}
      const double begin = now();
      const int64_t tiles = outputs / 16 / threads;
      for (int64_t at = 0; at + bytes <= kBytes; at += bytes) {
        t.x[0] = from + at;
        product(t, which * tiles, (which + 1) * tiles);
      }
      if (which == 0) took = now() - begin;
    };
    std::thread other;
    if (threads > 1) other = std::thread(share, 1);
    share(0);
    if (threads > 1) other.join();
    best = std::min(best, took / double(kBytes / bytes));
  }
  return best / cycle / (double(outputs) / 16 * columns / 32 * rows / 8 / threads);
}

}  // namespace
}  // namespace CPU_VARIANT

int main() {
  using namespace CPU_VARIANT;
  const double cycle = seconds_of_a_cycle();
  constexpr int kRows[] = {8, 16, 32, 64, 128}, kShapes[][2] = {{2048, 2048}, {8192, 2048}, {2048, 8192}};
  for (const bool large : {true, false}) {
    const uint8_t* const from = weights(large);
    if (!from) return 1;
    for (const int threads : {1, 2})
      for (const auto& [outputs, columns] : kShapes) {
        std::printf("%s pages, %d thread%s, %d columns, %d outputs:", large ? "large" : "small", threads,
                    threads > 1 ? "s" : "", columns, outputs);
        for (const int rows : kRows)
          std::printf("  %d rows %.1f", rows, cycles(from, rows, outputs, columns, threads, cycle));
        std::printf("\n");
        std::fflush(stdout);
      }
  }
}
