// Microseconds of products with 1, 4, 8 and 96 rows on one thread: 256 outputs of 2048 columns, whose weights
// stay in the second-level cache. The least of many times, so that other work on the machine counts little.
//   g++ -std=c++20 -O3 -DNDEBUG -w -DCPU_VARIANT=avxvnni -Isrc -Isrc/backends/cpu/variants/avx2
//   -fno-math-errno
//     -fno-exceptions -ffp-contract=off -fno-tree-vectorize -fno-tree-slp-vectorize
//     -fno-tree-loop-distribute-patterns -mavx2 -mfma -mf16c -mavxvnni bench/cached_products.cpp
//     -o /tmp/cached_products && /tmp/cached_products
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
#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/few_rows.h"
#include "backends/cpu/kernels/matmul.h"

constexpr int kColumns = 2048, kOutputs = 256, kMostRows = 96;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class W, template <class> class One, class Many, class Few>
void measure(const char* name) {
  const int64_t bytes = kLayout<W::type>.tile_bytes(kColumns) * (kOutputs / 16);
  static std::vector<uint8_t> w(size_t(bytes) + 16384, 0x35), x(size_t(kMostRows) * kColumns * 2, 3);
  static std::vector<float> y(kMostRows * kOutputs);
  auto* first = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(w.data()) + 63) / 64 * 64);
  gimbal_op op{};
  op.inputs = 2;
  gimbal_value out{}, wv{}, xv{};
  wv.dim[0] = kColumns, wv.dim[1] = kOutputs;
  for (int rows : {1, 4, 8, kMostRows}) {
    CpuTask t{};
    t.op = &op, t.out = &out, t.in[0] = &wv, t.in[1] = &xv;
    t.y = reinterpret_cast<unsigned char*>(y.data());
    t.x[0] = first, t.x[1] = x.data();
    t.rows = rows;
    double best = 1;
    for (int r = 0; r < 1000; r++) {
      const double a = now();
      if (rows > 1 && rows <= 32) matmul_few<W, Few>(t, 0, kOutputs / 16);
      else matmul<One, W, Many>(t, 0, kOutputs / 16);
      best = std::min(best, now() - a);
    }
    std::printf("%s, %d rows: %.1f us\n", name, rows, best * 1e6);
  }
}

}  // namespace
}  // namespace CPU_VARIANT

int main() {
  using namespace CPU_VARIANT;
  using A = Weights32<DType::Q4_0>;
  using B = Weights32<DType::Q8_0>;
  using C = Weights256<DType::Q4_K>;
  using D = Weights256<DType::Q6_K>;
  using E = Weights256<DType::IQ4_XS>;
  measure<A, OneRow32, Rows32<A>, FewRows32<A>>("q4_0");
  measure<B, OneRow32, Rows32<B>, FewRows32<B>>("q8_0");
  measure<C, OneRow256, Rows256<C>, FewRows256<C>>("q4_k");
  measure<D, OneRow256, Rows256<D>, FewRows256<D>>("q6_k");
  measure<E, OneRow256, Rows256<E>, FewRows256<E>>("iq4_xs");
}
