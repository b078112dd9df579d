// Every CPU kernel of one instruction set, and the table of them: a kernel exists if and only if it has a row
// here.
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "tensor/block_encode.h"
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
#include "backends/cpu/kernels/sort.h"

using gimbal::DTypeSet;
constexpr DTypeSet f32 = set_of(DType::F32), i32 = set_of(DType::I32);

using Launch = void (*)(const CpuTask&, int64_t, int64_t);

// CpuKernel::row_inputs, of kernels whose work item is a row.
constexpr uint32_t kFirst = 1, kSecond = 2, kBoth = 3, kAfterTheCache = 0b1110;

// The bits of `needs` are the variant's, and set by the backend.
constexpr CpuKernel row(const char* name, OpKind op, gimbal_layout layout, DTypeSet in0, DTypeSet in1,
                        DTypeSet out, CpuWork (*work)(const CpuTask&), Launch launch,
                        uint32_t row_inputs = 0) {
  return {{name, uint16_t(op), kRank, GIMBAL_EXACT, uint8_t(layout), in0, in1, out, 1, 0, 0, 0},
          work,
          launch,
          row_inputs};
}
template <template <class> class OneRow, class W>
constexpr auto two_streams() -> decltype(CpuKernel::launch_two) {
  if constexpr (wants_two_streams<W>()) return one_row_two_streams<OneRow, W>;
  else return nullptr;
}
constexpr CpuKernel mat_mul(const char* name, DType weights, DType x, Launch launch,
                            decltype(CpuKernel::launch_two) launch_two = nullptr) {
  CpuKernel k =
      row(name, OpKind::MatMul, GIMBAL_PACKED, set_of(weights), set_of(x), f32, matmul_work, launch);
  k.items_at_once = kTilesAtOnce;
  k.item_outputs = 16;
  k.launch_two = launch_two;
  return k;
}
constexpr CpuKernel embedding(const char* name, DType weights, Launch launch) {
  return row(name, OpKind::Embed, GIMBAL_PACKED, set_of(weights), i32, f32, row_work<1>, launch, kSecond);
}
constexpr CpuKernel attends(const char* name, DType cache, Launch launch) {
  return row(name, OpKind::Attention, GIMBAL_DENSE, f32, set_of(cache), f32, attention_work, launch);
}
constexpr CpuKernel writes(const char* name, DType cache, Launch launch) {
  return row(name, OpKind::CacheWrite, GIMBAL_CACHE, set_of(cache), f32, set_of(cache), cache_write_work,
             launch, kAfterTheCache);
}

#define STR2(x) #x
#define STR(x) STR2(x)
#define NAME(text) "cpu." STR(CPU_VARIANT) "." text
// Weights of format T, computed as W lays them out, by what follows.
#define WEIGHTS(W, T, format, row_of, ...)                       \
  mat_mul(NAME("mat_mul." format), DType::T, W::x, __VA_ARGS__), \
      embedding(NAME("embed." format), DType::T, embed<W, row_of<W>>)
#define FLOATS(T, format)                                                        \
  WEIGHTS(T, T, format, columns_row, matmul<OneRowOfFloats, T, RowsOfFloats<T>>, \
          two_streams<OneRowOfFloats, T>())
#define BLOCKS_32(T, format) WEIGHTS(T, T, format, blocks32_row, matmul<OneRow32, T, Rows32<T>>)
#define BLOCKS_256(W, T, format) \
  WEIGHTS(W, T, format, blocks256_row, matmul<OneRow256, W, Rows256<W>>, two_streams<OneRow256, W>())
// A cache of format T, read by R; `write` writes one head at one position.
#define CACHE(T, R, write, format)                            \
  attends(NAME("attention." format), DType::T, attention<R>), \
      writes(NAME("cache_write." format), DType::T, cache_write<write>)

const CpuKernel kTable[] = {
    FLOATS(F32, "f32"),
    FLOATS(F16, "f16"),
    FLOATS(BF16, "bf16"),
#include "backends/cpu/kernels/code_formats.inc"
    CACHE(F32, Plain<CacheF32>, write_head<CacheF32>, "f32"),
    CACHE(F16, Plain<CacheF16>, write_head<CacheF16>, "f16"),
    CACHE(BF16, Plain<CacheBF16>, write_head<CacheBF16>, "bf16"),
    CACHE(Q8_0, Quantized<CodesQ8_0>, write_head_blocks, "q8_0"),
    CACHE(Q4_0, Quantized<CodesQ4_0>, write_head_blocks, "q4_0"),
    row(NAME("quantize.a8_32"), OpKind::Quantize, GIMBAL_DENSE, f32, f32, set_of(DType::A8_32), row_work<4>,
        quantize_32, kFirst),
    row(NAME("quantize.a8_256"), OpKind::Quantize, GIMBAL_DENSE, f32, f32, set_of(DType::A8_256), row_work<4>,
        quantize_256, kFirst),
    row(NAME("rms_norm.f32"), OpKind::RmsNorm, GIMBAL_DENSE, f32, f32, f32, row_work<4>, rms_norm, kFirst),
    row(NAME("rope.f32"), OpKind::Rope, GIMBAL_DENSE, f32, f32, f32, row_work<4>, rope, kBoth),
    row(NAME("swiglu.f32"), OpKind::SwiGlu, GIMBAL_DENSE, f32, f32, f32, row_work<8>, swiglu, kBoth),
    row(NAME("squared_relu_glu.f32"), OpKind::SquaredReluGlu, GIMBAL_DENSE, f32, f32, f32, row_work<2>,
        squared_relu_glu, kBoth),
    row(NAME("scale.f32"), OpKind::Scale, GIMBAL_DENSE, f32, f32, f32, row_work<1>, scale_rows, kFirst),
    row(NAME("add.f32"), OpKind::Add, GIMBAL_DENSE, f32, f32, f32, row_work<1>, add_rows, kBoth),
    row(NAME("select_rows.f32"), OpKind::SelectRows, GIMBAL_DENSE, f32, i32, f32, row_work<1>, select_rows,
        kSecond),
    row(NAME("top_k.f32"), OpKind::TopK, GIMBAL_DENSE, f32, f32, f32, row_work_of_x<2>, top_k, kFirst),
    row(NAME("sort.f32"), OpKind::Sort, GIMBAL_DENSE, f32, f32, f32, row_work_of_x<40>, sort_rows, kFirst),
    row(NAME("argsort.f32"), OpKind::ArgSort, GIMBAL_DENSE, f32, f32, i32, row_work_of_x<40>, argsort_rows,
        kFirst),
};

}  // namespace

extern const CpuKernel* const table;
extern const size_t table_size;
const CpuKernel* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
