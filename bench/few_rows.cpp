// Cycles that kernels/few_products.h takes for 32 columns of a tile (16 outputs) times some rows: weights and
// rows are in the second-level cache, so that memory is no part of it. Run it while nothing else runs.
//   g++ -std=c++20 -O3 -DNDEBUG -w -DCPU_VARIANT=avx512vnni -Isrc -Isrc/backends/cpu/variants/avx512
//   -fno-math-errno
//     -fno-exceptions -ffp-contract=off -fno-tree-vectorize -fno-tree-slp-vectorize
//     -fno-tree-loop-distribute-patterns -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c
//     -mprefer-vector-width=512 bench/few_rows.cpp -o /tmp/few_rows && /tmp/few_rows
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
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

#include "backends/cpu/kernels/few_products.h"

constexpr int kColumns = 2048, kRepetitions = 20;
constexpr int64_t kBytes = 300 << 10;  // of tiles

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

template <class P, class W, int M>
void measure(const char* name, double cycle) {
  constexpr gimbal::DTypeInfo info = gimbal::info(P::x);
  const int64_t tile_bytes = kLayout<W::type>.tile_bytes(kColumns),
                row_bytes = int64_t(kColumns) / info.block * info.bytes;
  const int tiles = int(std::max<int64_t>(kBytes / tile_bytes / 2 * 2, 2));
  std::vector<uint8_t> weights(size_t(tiles * tile_bytes) + 128), rows(size_t(M * row_bytes));
  auto* const first =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(weights.data()) + 63) / 64 * 64);
  alignas(64) static float total[2][kMaxFewRows][16];
  const uint8_t* x[M];
  for (int m = 0; m < M; m++) x[m] = rows.data() + m * row_bytes;
  double best = 1;
  for (int r = 0; r < kRepetitions; r++) {
    const double begin = now();
    for (int t = 0; t < tiles; t += P::kTiles) {
      TilePart p{{}, P::kTiles, 0, kColumns, kColumns, true};
      for (int i = 0; i < 2; i++) p.tile[i] = first + (t + i % P::kTiles) * tile_bytes;
      std::memset(total, 0, sizeof(float) * 16 * M);
      P::template add_part<M>(p, x, total[0]);
    }
    best = std::min(best, (now() - begin) / tiles);
  }
  std::printf("%-7s %d rows: %6.1f cycles\n", name, M, best / cycle / kColumns * 32);
}
template <class P, class W>
void measure_all(const char* name, double cycle) {
  measure<P, W, P::kFewest>(name, cycle);
  if constexpr (P::kFewest < 4) measure<P, W, 4>(name, cycle);
  measure<P, W, 8>(name, cycle);
}
template <DType T>
void measure_format(const char* name, double cycle) {
  if constexpr (T == DType::BF16) measure_all<FewRowsOfFloats<Numbers<T>>, Numbers<T>>(name, cycle);
  else if constexpr (format_of(T).x == DType::A8_32)
    measure_all<FewRows32<Weights32<T>>, Weights32<T>>(name, cycle);
  else measure_all<FewRows256<Weights256<T>>, Weights256<T>>(name, cycle);
}

}  // namespace
}  // namespace CPU_VARIANT

int main() {
  using namespace CPU_VARIANT;
  const double cycle = seconds_of_a_cycle();
  measure_format<DType::Q8_0>("q8_0", cycle);
  measure_format<DType::Q4_0>("q4_0", cycle);
  measure_format<DType::Q4_K>("q4_k", cycle);
  measure_format<DType::Q6_K>("q6_k", cycle);
  measure_format<DType::IQ4_XS>("iq4_xs", cycle);
  measure_format<DType::BF16>("bf16", cycle);
}
