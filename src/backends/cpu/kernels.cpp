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
#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/float_weights.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/rows.h"

using gimbal::DTypeSet;
constexpr DTypeSet f32 = set_of(DType::F32), i32 = set_of(DType::I32);

// The bits of `needs` are the variant's, and set by the backend.
constexpr CpuKernel row(const char* name, OpKind op, gimbal_layout layout, DTypeSet in0, DTypeSet in1,
                        DTypeSet out, CpuWork (*work)(const CpuTask&),
                        void (*launch)(const CpuTask&, int64_t, int64_t)) {
  return {{name, uint16_t(op), kRank, GIMBAL_EXACT, uint8_t(layout), in0, in1, out, 1, 0, 0}, work, launch};
}
template <class W, template <class, int> class Tile>
constexpr CpuKernel mat_mul(const char* name) {
  return row(name, OpKind::MatMul, GIMBAL_PACKED, set_of(W::type), set_of(W::x), f32, matmul_work,
             matmul<Tile, W>);
}
template <class W, RowOf Row>
constexpr CpuKernel embedding(const char* name) {
  return row(name, OpKind::Embed, GIMBAL_PACKED, set_of(W::type), i32, f32, row_work<1>, embed<W, Row>);
}
template <class C>
constexpr CpuKernel attends(const char* name) {
  return row(name, OpKind::Attention, GIMBAL_DENSE, f32, set_of(C::type), f32, attention_work, attention<C>);
}
template <class C>
constexpr CpuKernel writes(const char* name) {
  return row(name, OpKind::CacheWrite, GIMBAL_CACHE, set_of(C::type), f32, set_of(C::type), cache_write_work,
             cache_write<C>);
}

#define STR2(x) #x
#define STR(x) STR2(x)
#define NAME(text) "cpu." STR(CPU_VARIANT) "." text
#define WEIGHTS(W, format, Tile, row_of) \
  mat_mul<W, Tile>(NAME("mat_mul." format)), embedding<W, row_of<W>>(NAME("embed." format))
#define CACHE(C, format) attends<C>(NAME("attention." format)), writes<C>(NAME("cache_write." format))

const CpuKernel kTable[] = {
    WEIGHTS(F32, "f32", Columns, columns_row),
    WEIGHTS(F16, "f16", Columns, columns_row),
    WEIGHTS(BF16, "bf16", Columns, columns_row),
    WEIGHTS(Q8_0, "q8_0", Blocks32, blocks32_row),
    WEIGHTS(Q4_0, "q4_0", Blocks32, blocks32_row),
    WEIGHTS(Q4_1, "q4_1", Blocks32, blocks32_row),
    WEIGHTS(Q5_0, "q5_0", Blocks32, blocks32_row),
    WEIGHTS(Q5_1, "q5_1", Blocks32, blocks32_row),
    WEIGHTS(IQ4_NL, "iq4_nl", Blocks32, blocks32_row),
    WEIGHTS(MXFP4, "mxfp4", Blocks32, blocks32_row),
    WEIGHTS(Q2_K, "q2_k", Blocks256, blocks256_row),
    WEIGHTS(Q3_K, "q3_k", Blocks256, blocks256_row),
    WEIGHTS(Q4_K, "q4_k", Blocks256, blocks256_row),
    WEIGHTS(Q5_K, "q5_k", Blocks256, blocks256_row),
    WEIGHTS(Q6_K, "q6_k", Blocks256, blocks256_row),
    WEIGHTS(IQ4_XS, "iq4_xs", Blocks256, blocks256_row),
    WEIGHTS(TQ1_0, "tq1_0", Blocks256, blocks256_row),
    WEIGHTS(TQ2_0, "tq2_0", Blocks256, blocks256_row),
    CACHE(CacheF32, "f32"),
    CACHE(CacheF16, "f16"),
    CACHE(CacheBF16, "bf16"),
    row(NAME("quantize.a8_32"), OpKind::Quantize, GIMBAL_DENSE, f32, f32, set_of(DType::A8_32), row_work<4>,
        quantize_32),
    row(NAME("quantize.a8_256"), OpKind::Quantize, GIMBAL_DENSE, f32, f32, set_of(DType::A8_256), row_work<4>,
        quantize_256),
    row(NAME("rms_norm.f32"), OpKind::RmsNorm, GIMBAL_DENSE, f32, f32, f32, row_work<4>, rms_norm),
    row(NAME("rope.f32"), OpKind::Rope, GIMBAL_DENSE, f32, f32, f32, row_work<4>, rope),
    row(NAME("swiglu.f32"), OpKind::SwiGlu, GIMBAL_DENSE, f32, f32, f32, row_work<8>, swiglu),
    row(NAME("add.f32"), OpKind::Add, GIMBAL_DENSE, f32, f32, f32, row_work<1>, add_rows),
    row(NAME("select_rows.f32"), OpKind::SelectRows, GIMBAL_DENSE, f32, i32, f32, row_work<1>, select_rows),
};

}  // namespace

extern const CpuKernel* const table;
extern const size_t table_size;
const CpuKernel* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
