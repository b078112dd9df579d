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

using Launch = void (*)(const CpuTask&, int64_t, int64_t);

// The bits of `needs` are the variant's, and set by the backend.
constexpr CpuKernel row(const char* name, OpKind op, gimbal_layout layout, DTypeSet in0, DTypeSet in1,
                        DTypeSet out, CpuWork (*work)(const CpuTask&), Launch launch) {
  return {{name, uint16_t(op), kRank, GIMBAL_EXACT, uint8_t(layout), in0, in1, out, 1, 0, 0}, work, launch};
}
constexpr CpuKernel mat_mul(const char* name, DType weights, DType x, Launch launch) {
  return row(name, OpKind::MatMul, GIMBAL_PACKED, set_of(weights), set_of(x), f32, matmul_work, launch);
}
constexpr CpuKernel embedding(const char* name, DType weights, Launch launch) {
  return row(name, OpKind::Embed, GIMBAL_PACKED, set_of(weights), i32, f32, row_work<1>, launch);
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
// Weights of format T, computed as W lays them out.
#define WEIGHTS(W, T, format, launch, row_of)               \
  mat_mul(NAME("mat_mul." format), DType::T, W::x, launch), \
      embedding(NAME("embed." format), DType::T, embed<W, row_of<W>>)
#define FLOATS(T, format) WEIGHTS(T, T, format, matmul_floats<T>, columns_row)
#define BLOCKS_32(T, format) WEIGHTS(T, T, format, (matmul<OneRow32, T, Rows32<T>>), blocks32_row)
#define BLOCKS_256(W, T, format) WEIGHTS(W, T, format, (matmul<OneRow256, W, Rows256<W>>), blocks256_row)
#define CACHE(C, format) attends<C>(NAME("attention." format)), writes<C>(NAME("cache_write." format))

const CpuKernel kTable[] = {
    FLOATS(F32, "f32"),
    FLOATS(F16, "f16"),
    FLOATS(BF16, "bf16"),
    BLOCKS_32(Q8_0, "q8_0"),
    BLOCKS_32(Q4_0, "q4_0"),
    BLOCKS_32(Q4_1, "q4_1"),
    BLOCKS_32(Q5_0, "q5_0"),
    BLOCKS_32(Q5_1, "q5_1"),
    BLOCKS_32(IQ4_NL, "iq4_nl"),
    BLOCKS_32(MXFP4, "mxfp4"),
    BLOCKS_256(Q2_K, Q2_K, "q2_k"),
    BLOCKS_256(Q3_K, Q3_K, "q3_k"),
    BLOCKS_256(Q4_K, Q4_K, "q4_k"),
    BLOCKS_256(Q5_K, Q5_K, "q5_k"),
    BLOCKS_256(Q6_K, Q6_K, "q6_k"),
    BLOCKS_256(IQ4_XS, IQ4_XS, "iq4_xs"),
    BLOCKS_256(Ternary, TQ1_0, "tq1_0"),
    BLOCKS_256(Ternary, TQ2_0, "tq2_0"),
    BLOCKS_256(Ternary, I2_S, "i2_s"),
    BLOCKS_256(Levels32, IQ2_XXS, "iq2_xxs"),
    BLOCKS_256(Levels16, IQ2_XS, "iq2_xs"),
    BLOCKS_256(Levels16, IQ2_S, "iq2_s"),
    BLOCKS_256(Levels32, IQ3_XXS, "iq3_xxs"),
    BLOCKS_256(Levels32, IQ3_S, "iq3_s"),
    BLOCKS_256(Levels32, IQ1_S, "iq1_s"),
    BLOCKS_256(Levels16, IQ1_M, "iq1_m"),
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
