// Every CPU kernel of one instruction set, and the table of them: a kernel exists if and only if it has a row
// here. CPU_PRODUCTS_ONLY: this set adds a dot product of bytes to another set, whose rows serve for the
// rest. CPU_CODES_ONLY: of these, only products of codes, because that set has products of floats for any
// number of rows. CPU_NO_FEW_ROWS: none of its own for few rows. CPU_HALF_TILES: products of codes with many
// rows take half a tile and six rows at once.
#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/layout.h"
#include "ops/op.h"
#include "tensor/activations.h"
#include "tensor/block_encode.h"
#include "tensor/half.h"
#include "vec.h"  // from variants/<name>
#ifndef CPU_PRODUCTS_ONLY
#include "tables.h"
#endif
#ifdef CPU_HALF_TILES
#include "squares.h"
#endif

namespace CPU_VARIANT {
namespace {

using gimbal::DType, gimbal::Format, gimbal::Levels, gimbal::Number, gimbal::Scales, gimbal::format_of;
using gimbal::OpKind, gimbal::kChunk, gimbal::kPagePositions;

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/blocks256.h"
#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/cache_write.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/embed.h"
#include "backends/cpu/kernels/experts.h"
#include "backends/cpu/kernels/few_rows.h"
#include "backends/cpu/kernels/float_weights.h"
#include "backends/cpu/kernels/gated_rule.h"
#include "backends/cpu/kernels/index_scores.h"
#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/recurrent.h"
#include "backends/cpu/kernels/row_sums.h"
#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/kernels/sort.h"
#ifndef CPU_PRODUCTS_ONLY
#include "backends/cpu/kernels/table_look_up.h"
#endif

using Launch = void (*)(const CpuTask&, int64_t, int64_t);

constexpr bool kByRow = true;  // CpuRow::by_row

// The bits of `needs` are the variant's, and set by the backend.
constexpr CpuRow row(const char* name, OpKind op, CpuWork (*work)(const CpuTask&), Launch launch,
                     bool by_row = false, DType format = DType::F32) {
  return {{name, uint16_t(op), kRank, uint8_t(format), 0, CpuRows::Any}, work, launch, by_row};
}
// The kernels of a format of weights. Formats with the same facts share them.
struct WeightKernels {
  DType x;              // of the activations
  Launch product, few;  // for any number of rows, and for few
  decltype(CpuRow::launch_two) two_streams;
  Launch expert, embed;
};
template <class W, template <class> class OneRow, class Many, class Few, Launch embed>
constexpr WeightKernels weight_kernels() {
#ifdef CPU_NO_FEW_ROWS
  constexpr Launch few = matmul<OneRow, W, Many>;
#else
  constexpr Launch few = matmul_few<W, Few>;
#endif
  decltype(CpuRow::launch_two) two_streams = nullptr;
  if constexpr (wants_two_streams<W>()) two_streams = one_row_two_streams<OneRow, W>;
  return {W::x, matmul<OneRow, W, Many>, few, two_streams, expert_mat_mul<W, matmul<OneRow, W, Many>, few>,
          embed};
}
template <DType T>
constexpr WeightKernels weight_kernels() {
  constexpr DType shared = gimbal::first_alike(T);
  constexpr Format f = format_of(T);
  if constexpr (f.number != Number::Codes) {
    using W = Numbers<shared>;
    return weight_kernels<W, OneRowOfFloats, RowsOfFloats<W>, FewRowsOfFloats<W>, embed_numbers<W>>();
  } else if constexpr (f.x == DType::A8_32) {
    using W = Weights32<shared>;
    return weight_kernels<W, OneRow32, Rows32<W>, FewRows32<W>, embed_codes<W, Rows32<W>>>();
  } else if constexpr (f.x == DType::A8_ROW) {
    using W = Weights32<shared>;
    return weight_kernels<W, OneRowOfSums, RowsOfSums<W>, FewRowsOfSums<W>, embed_codes<W, RowsOfSums<W>>>();
  } else {
    using W = Weights256<shared>;
    return weight_kernels<W, OneRow256, Rows256<W>, FewRows256<W>, embed_codes<W, Rows256<W>>>();
  }
}
constexpr CpuRow mat_mul(const char* name, DType weights, const WeightKernels& kernels) {
  CpuRow k = row(name, OpKind::MatMul, matmul_work, kernels.product, false, weights);
  k.info.x = uint8_t(kernels.x);
  k.items_at_once = kTilesOfChunk;
  k.item_outputs = 16;
  k.launch_two = kernels.two_streams;
  return k;
}
constexpr CpuRow mat_mul_few(const char* name, DType weights, const WeightKernels& kernels) {
  CpuRow k = row(name, OpKind::MatMul, matmul_work, kernels.few, false, weights);
  k.info.x = uint8_t(kernels.x);
  k.info.rank = kRank + 12, k.info.rows = CpuRows::Few;  // above a set that has none
  k.items_at_once = 2;
  k.item_outputs = 16;
  return k;
}
#ifndef CPU_PRODUCTS_ONLY
// Below every multiplication, so that these take no place of a faster set among the rows that are measured:
// they are chosen where a measurement says so, or by name.
constexpr int16_t kPairRank = kRank / 10 - 10, kTripleRank = kPairRank - 10;
constexpr CpuRow mat_mul_look_up(const char* name, int16_t rank, Launch launch) {
  CpuRow k = row(name, OpKind::MatMul, look_up_work, launch, false, DType::I2_S);
  k.info.x = uint8_t(DType::A8_ROW);
  k.info.rank = rank, k.info.alike = true;
  return k;
}
#endif
constexpr CpuRow expert_mat_mul(const char* name, DType weights, const WeightKernels& kernels) {
  CpuRow k = row(name, OpKind::ExpertMatMul, expert_work, kernels.expert, false, weights);
  k.info.x = uint8_t(kernels.x);
  return k;
}
constexpr CpuRow embedding(const char* name, DType weights, const WeightKernels& kernels) {
  return row(name, OpKind::Embed, row_work<1>, kernels.embed, kByRow, weights);
}
constexpr CpuRow attends(const char* name, DType cache, Launch launch) {
  CpuRow k = row(name, OpKind::Attention, attention_work, launch, false, cache);
  k.items_at_once = kRowsTogether;
  return k;
}
constexpr CpuRow writes(const char* name, DType cache, Launch launch) {
  return row(name, OpKind::CacheWrite, cache_write_work, launch, kByRow, cache);
}
constexpr CpuRow scores(const char* name, DType cache, Launch launch) {
  return row(name, OpKind::IndexScores, index_work, launch, kByRow, cache);
}
constexpr CpuRow quantizes(const char* name, DType to, Launch launch) {
  return row(name, OpKind::Quantize, row_work<4>, launch, kByRow, to);
}

#define STR2(x) #x
#define STR(x) STR2(x)
#define NAME(text) "cpu." STR(CPU_VARIANT) "." text
// A cache of format T, read by R; `write` writes one head at one position.
#define CACHE(T, R, write, format)                            \
  attends(NAME("attention." format), DType::T, attention<R>), \
      writes(NAME("cache_write." format), DType::T, cache_write<write>)

const CpuRow kTable[] = {
#ifdef CPU_CODES_ONLY
#define GIMBAL_NUMBERS(...)
#endif
#define GIMBAL_FORMAT(id, name, ...)                                       \
  mat_mul(NAME("mat_mul." #name), DType::id, weight_kernels<DType::id>()), \
      expert_mat_mul(NAME("expert_mat_mul." #name), DType::id, weight_kernels<DType::id>()),
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
#ifndef CPU_NO_FEW_ROWS
#ifdef CPU_CODES_ONLY
#define GIMBAL_NUMBERS(...)
#endif
#define GIMBAL_FORMAT(id, name, ...) \
  mat_mul_few(NAME("mat_mul_few." #name), DType::id, weight_kernels<DType::id>()),
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
#endif
#ifndef CPU_PRODUCTS_ONLY
    mat_mul_look_up(NAME("mat_mul.tl1"), kPairRank, mat_mul_by_tables<DType::I2_S, false>),
    mat_mul_look_up(NAME("mat_mul.tl2"), kTripleRank, mat_mul_by_tables<DType::I2_S, true>),
#define GIMBAL_FORMAT(id, name, ...) embedding(NAME("embed." #name), DType::id, weight_kernels<DType::id>()),
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
    CACHE(F32, Plain<CacheF32>, write_head<CacheF32>, "f32"),
    CACHE(F16, Plain<CacheF16>, write_head<CacheF16>, "f16"),
    CACHE(BF16, Plain<CacheBF16>, write_head<CacheBF16>, "bf16"),
    CACHE(Q8_0, Quantized<CodesQ8_0>, write_head_blocks<DType::Q8_0>, "q8_0"),
    CACHE(Q5_0, Quantized<CodesQ5_0>, write_head_blocks<DType::Q5_0>, "q5_0"),
    CACHE(Q4_1, Quantized<CodesQ4_1>, write_head_blocks<DType::Q4_1>, "q4_1"),
    CACHE(Q4_0, Quantized<CodesQ4_0>, write_head_blocks<DType::Q4_0>, "q4_0"),
    CACHE(IQ4_NL, Quantized<CodesIQ4_NL>, write_head_blocks<DType::IQ4_NL>, "iq4_nl"),
    scores(NAME("index_scores.f32"), DType::F32, index_scores<Plain<CacheF32>>),
    scores(NAME("index_scores.f16"), DType::F16, index_scores<Plain<CacheF16>>),
    scores(NAME("index_scores.bf16"), DType::BF16, index_scores<Plain<CacheBF16>>),
    row(NAME("keep_top.f32"), OpKind::KeepTop, row_work_of_x<2>, keep_top, kByRow),
    quantizes(NAME("quantize.a8_32"), DType::A8_32, quantize<DType::A8_32>),
    quantizes(NAME("quantize.a8_256"), DType::A8_256, quantize<DType::A8_256>),
    quantizes(NAME("quantize.a8_row"), DType::A8_ROW, quantize<DType::A8_ROW>),
    row(NAME("rms_norm.f32"), OpKind::RmsNorm, row_work<4>, rms_norm, kByRow),
    row(NAME("norm.f32"), OpKind::Norm, row_work<4>, norm, kByRow),
    row(NAME("route.f32"), OpKind::Route, row_work_of_x<30>, route, kByRow),
    row(NAME("combine.f32"), OpKind::Combine, row_work_of_x<2>, combine, kByRow),
    row(NAME("short_conv.f32"), OpKind::ShortConv, conv_work, short_conv),
    row(NAME("selective_scan.f32"), OpKind::SelectiveScan, scan_work, selective_scan),
    row(NAME("delta_rule.f32"), OpKind::DeltaRule, delta_work, delta_rule),
    row(NAME("gated_rule.f32"), OpKind::GatedRule, gated_work, gated_rule),
    row(NAME("slice.f32"), OpKind::Slice, row_work<1>, slice, kByRow),
    row(NAME("concat.f32"), OpKind::Concat, row_work<1>, concat, kByRow),
    row(NAME("rope.f32"), OpKind::Rope, row_work<4>, rope, kByRow),
    row(NAME("hadamard.f32"), OpKind::Hadamard, row_work<7>, hadamard, kByRow),
#define GIMBAL_ELEMENTWISE(number, id, name, ...) \
  row(NAME(name ".f32"), OpKind::id, row_work<4>, elementwise_##id, kByRow),
#include "ops/ops.def"
    row(NAME("add_scaled.f32"), OpKind::AddScaled, row_work<4>, add_scaled, kByRow),
    row(NAME("select_rows.f32"), OpKind::SelectRows, row_work<1>, select_rows, kByRow),
    row(NAME("top_k.f32"), OpKind::TopK, row_work_of_x<2>, top_k, kByRow),
    row(NAME("sort.f32"), OpKind::Sort, row_work_of_x<40>, sort_rows, kByRow),
    row(NAME("argsort.f32"), OpKind::ArgSort, row_work_of_x<40>, argsort_rows, kByRow),
#endif
};

}  // namespace

extern const CpuRow* const table;
extern const size_t table_size;
const CpuRow* const table = kTable;
const size_t table_size = sizeof kTable / sizeof *kTable;

}  // namespace CPU_VARIANT
