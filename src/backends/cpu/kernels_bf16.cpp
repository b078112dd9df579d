// Matrix products of bf16 and f16 weights for prompts by products of bf16 pairs: of vectors (AVX-512 BF16),
// or with CPU_PAIR_TILES of tile registers (AMX-BF16). They are fast rows: x is rounded to bf16, and so are
// f16 weights, so they are taken with `--numerics fast` only, and then where they were measured faster than
// the exact ones.
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "pairs.h"  // from variants/<name>
#include "tensor/dtype.h"
#include "vec.h"
#ifdef CPU_PAIR_TILES
#include "tile.h"
#endif

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::OpKind, gimbal::kChunk;

#ifdef CPU_PAIR_TILES
#include "backends/cpu/kernels/pair_tiles.h"
#else
#include "backends/cpu/kernels/pair_product.h"
#endif

// Below every exact row: they are chosen only after a measurement or on request. Not for few rows: generation
// and drafts stay exact.
constexpr int16_t kFastRank = -1;
constexpr CpuRow row(const char* name, DType weights, float tolerance,
                     void (*launch)(const CpuTask&, int64_t, int64_t)) {
  CpuRow k{{name, uint16_t(OpKind::MatMul), kFastRank, uint8_t(weights), uint8_t(DType::F32), CpuRows::Many,
            tolerance},
           matmul_work,
           launch};
  k.items_at_once = kTilesOfChunk;
  return k;
}

// A bf16 has 8 bits, so rounding to it changes a number by 2^-8 of it at most. A term of the sum has one such
// factor, or two: (1 + 2^-8)^2.
constexpr float kRounding = 1 / 256.f;

#define STR2(x) #x
#define STR(x) STR2(x)
const CpuRow kTable[] = {
    row("cpu." STR(CPU_VARIANT) ".mat_mul.bf16", DType::BF16, kRounding, product_of_pairs<DType::BF16>),
    row("cpu." STR(CPU_VARIANT) ".mat_mul.f16", DType::F16, 2 * kRounding + kRounding * kRounding,
        product_of_pairs<DType::F16>),
};

}  // namespace

extern const CpuRow* const table;
extern const size_t table_size;
const CpuRow* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
