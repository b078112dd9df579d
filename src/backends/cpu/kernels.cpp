// Every CPU kernel of one instruction set, and the table of them: a kernel exists if and only if it has a row
// here.
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "tensor/half.h"
#include "vec.h"  // from variants/<name>

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::OpKind, gimbal::set_of, gimbal::kChunk, gimbal::kPagePositions;

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/rows.h"

#define STR2(x) #x
#define STR(x) STR2(x)
// The bits of `needs` are the variant's, and set by the backend.
#define ROW(op, name, layout, in0, in1, out, work, launch) \
  {                                                        \
    {"cpu." STR(CPU_VARIANT) "." name,                     \
     uint16_t(OpKind::op),                                 \
     kRank,                                                \
     GIMBAL_EXACT,                                         \
     layout,                                               \
     in0,                                                  \
     in1,                                                  \
     out,                                                  \
     1,                                                    \
     0,                                                    \
     0},                                                   \
        work, launch                                       \
  }
#define MATMUL(W, name, Tile)                                                                  \
  ROW(MatMul, "mat_mul." name, GIMBAL_PACKED, set_of(W::type), set_of(W::x), f32, matmul_work, \
      (matmul<Tile, W>))
#define EMBED(W, name) \
  ROW(Embed, "embed." name, GIMBAL_PACKED, set_of(W::type), set_of(DType::I32), f32, row_work<1>, embed<W>)
#define CACHE(C, name)                                                                                      \
  ROW(Attention, "attention." name, GIMBAL_DENSE, f32, set_of(C::type), f32, attention_work, attention<C>), \
      ROW(CacheWrite, "cache_write." name, GIMBAL_CACHE, set_of(C::type), f32, set_of(C::type),             \
          cache_write_work, cache_write<C>)

constexpr gimbal::DTypeSet f32 = set_of(DType::F32);

const CpuKernel kTable[] = {
    MATMUL(F32, "f32", Columns),
    MATMUL(F16, "f16", Columns),
    MATMUL(BF16, "bf16", Columns),
    MATMUL(Q8_0, "q8_0", Blocks32),
    MATMUL(Q4_0, "q4_0", Blocks32),
    MATMUL(Q6_K, "q6_k", BlocksQ6),
    EMBED(F32, "f32"),
    EMBED(F16, "f16"),
    EMBED(BF16, "bf16"),
    EMBED(Q8_0, "q8_0"),
    EMBED(Q4_0, "q4_0"),
    EMBED(Q6_K, "q6_k"),
    CACHE(CacheF32, "f32"),
    CACHE(CacheF16, "f16"),
    CACHE(CacheBF16, "bf16"),
    ROW(Quantize, "quantize.a8_32", GIMBAL_DENSE, f32, f32, set_of(DType::A8_32), row_work<4>, quantize_32),
    ROW(Quantize, "quantize.a8_256", GIMBAL_DENSE, f32, f32, set_of(DType::A8_256), row_work<4>,
        quantize_256),
    ROW(RmsNorm, "rms_norm.f32", GIMBAL_DENSE, f32, f32, f32, row_work<4>, rms_norm),
    ROW(Rope, "rope.f32", GIMBAL_DENSE, f32, f32, f32, row_work<4>, rope),
    ROW(SwiGlu, "swiglu.f32", GIMBAL_DENSE, f32, f32, f32, row_work<8>, swiglu),
    ROW(Add, "add.f32", GIMBAL_DENSE, f32, f32, f32, row_work<1>, add_rows),
    ROW(SelectRows, "select_rows.f32", GIMBAL_DENSE, f32, set_of(DType::I32), f32, row_work<1>, select_rows),
};

}  // namespace

extern const CpuKernel* const table;
extern const size_t table_size;
const CpuKernel* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
