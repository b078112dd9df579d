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

using gimbal::DType, gimbal::OpKind, gimbal::kChunk, gimbal::kPagePositions;

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/float_weights.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/kernels/sort.h"

using Launch = void (*)(const CpuTask&, int64_t, int64_t);

constexpr bool kByRow = true;  // CpuRow::by_row

// The bits of `needs` are the variant's, and set by the backend.
constexpr CpuRow row(const char* name, OpKind op, CpuWork (*work)(const CpuTask&), Launch launch,
                     bool by_row = false, DType format = DType::F32) {
  return {{name, uint16_t(op), kRank, uint8_t(format), 0, false}, work, launch, by_row};
}
template <template <class> class OneRow, class W>
constexpr auto two_streams() -> decltype(CpuRow::launch_two) {
  if constexpr (wants_two_streams<W>()) return one_row_two_streams<OneRow, W>;
  else return nullptr;
}
constexpr CpuRow mat_mul(const char* name, DType weights, DType x, Launch launch,
                         decltype(CpuRow::launch_two) launch_two = nullptr) {
  CpuRow k = row(name, OpKind::MatMul, matmul_work, launch, 0, weights);
  k.info.x = uint8_t(x);
  k.items_at_once = kTilesAtOnce;
  k.item_outputs = 16;
  k.launch_two = launch_two;
  return k;
}
constexpr CpuRow embedding(const char* name, DType weights, Launch launch) {
  return row(name, OpKind::Embed, row_work<1>, launch, kByRow, weights);
}
constexpr CpuRow attends(const char* name, DType cache, Launch launch) {
  return row(name, OpKind::Attention, attention_work, launch, false, cache);
}
constexpr CpuRow writes(const char* name, DType cache, Launch launch) {
  return row(name, OpKind::CacheWrite, cache_write_work, launch, kByRow, cache);
}
constexpr CpuRow quantizes(const char* name, DType to, Launch launch) {
  return row(name, OpKind::Quantize, row_work<4>, launch, kByRow, to);
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

const CpuRow kTable[] = {
    FLOATS(F32, "f32"),
    FLOATS(F16, "f16"),
    FLOATS(BF16, "bf16"),
#include "backends/cpu/kernels/code_formats.inc"
    CACHE(F32, Plain<CacheF32>, write_head<CacheF32>, "f32"),
    CACHE(F16, Plain<CacheF16>, write_head<CacheF16>, "f16"),
    CACHE(BF16, Plain<CacheBF16>, write_head<CacheBF16>, "bf16"),
    CACHE(Q8_0, Quantized<CodesQ8_0>, write_head_blocks, "q8_0"),
    CACHE(Q4_0, Quantized<CodesQ4_0>, write_head_blocks, "q4_0"),
    quantizes(NAME("quantize.a8_32"), DType::A8_32, quantize_32),
    quantizes(NAME("quantize.a8_256"), DType::A8_256, quantize_256),
    row(NAME("rms_norm.f32"), OpKind::RmsNorm, row_work<4>, rms_norm, kByRow),
    row(NAME("rope.f32"), OpKind::Rope, row_work<4>, rope, kByRow),
#define GIMBAL_ELEMENTWISE(number, id, name, ...) \
  row(NAME(name ".f32"), OpKind::id, row_work<4>, elementwise_##id, kByRow),
#include "ops/ops.def"
    row(NAME("select_rows.f32"), OpKind::SelectRows, row_work<1>, select_rows, kByRow),
    row(NAME("top_k.f32"), OpKind::TopK, row_work_of_x<2>, top_k, kByRow),
    row(NAME("sort.f32"), OpKind::Sort, row_work_of_x<40>, sort_rows, kByRow),
    row(NAME("argsort.f32"), OpKind::ArgSort, row_work_of_x<40>, argsort_rows, kByRow),
};

}  // namespace

extern const CpuRow* const table;
extern const size_t table_size;
const CpuRow* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
