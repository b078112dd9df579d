#include "gpu/rows.h"

#include "device/claims.h"
#include "gpu/tensors/launches.h"
#include "ops/op.h"
#include "tensor/format.h"

namespace gimbal::gpu {
namespace {

// The limits of claims(), and those of counting words in 32 bits.
constexpr gimbal_limit kBytes = {"bytes", GIMBAL_BYTES, GIMBAL_EVERY_VALUE, 0, 0, 0, int64_t(UINT32_MAX) * 4},
                       kRow = {"row", GIMBAL_ROW_VALUES, GIMBAL_EVERY_VALUE, 0, 0, 0, UINT32_MAX};
constexpr gimbal_limit kLimits[] = {kSizes[0], kSizes[1], kBytes, kRow};
constexpr gimbal_limit kTwo[] = {kTwoWays[0], kTwoWays[1], kTwoWays[2], kBytes, kRow};
constexpr gimbal_limit kHeads[] = {kHeadSizes[0], kHeadSizes[1], kHeadSizes[2], kHeadSizes[3], kBytes, kRow};
// So few rows that each must keep more lanes busy.
constexpr gimbal_limit kFewHeads[] = {kHeadSizes[0],
                                      kHeadSizes[1],
                                      kHeadSizes[2],
                                      kHeadSizes[3],
                                      kBytes,
                                      kRow,
                                      {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 16}};
constexpr gimbal_limit kRoutes[] = {
    kRouteSizes[0], kRouteSizes[1], kRouteSizes[2], kRouteSizes[3], kRouteSizes[4], kBytes, kRow};
constexpr gimbal_limit kOneRow[] = {
    kSizes[0], kSizes[1], kBytes, kRow, {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 1}};

constexpr gimbal_limit kFewRows[] = {
    kSizes[0], kSizes[1], kBytes, kRow, {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 32}};
// So few rows that hardly two of them choose the same expert.
constexpr gimbal_limit kSingleSlots[] = {
    kSizes[0], kSizes[1], kBytes, kRow, {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 8}};

struct Cache {
  DType type;
  const char *attention, *attention_few, *write;
  Plan plan_write;
};
constexpr Cache kCaches[] = {
    {DType::F32, "attention_f32", "attention_few_f32", "cache_write_f32", plan_cache_write_floats},
    {DType::F16, "attention_f16", "attention_few_f16", "cache_write_f16", plan_cache_write_floats},
    {DType::BF16, "attention_bf16", "attention_few_bf16", "cache_write_bf16", plan_cache_write_floats},
    {DType::Q8_0, "attention_q8_0", "attention_few_q8_0", "cache_write_q8_0", plan_cache_write_blocks},
    {DType::Q5_0, "attention_q5_0", "attention_few_q5_0", "cache_write_q5_0", plan_cache_write_blocks},
    {DType::Q4_1, "attention_q4_1", "attention_few_q4_1", "cache_write_q4_1", plan_cache_write_blocks},
    {DType::Q4_0, "attention_q4_0", "attention_few_q4_0", "cache_write_q4_0", plan_cache_write_blocks},
    {DType::IQ4_NL, "attention_iq4_nl", "attention_few_iq4_nl", "cache_write_iq4_nl",
     plan_cache_write_blocks},
};

}  // namespace

Rows make_rows(const std::string& backend, bool matrix_units, bool tensors) {
  Rows r;
  auto add = [&](OpKind op, DType format, const char* kernel, Plan plan,
                 const char* variant = "gpu") -> gimbal_kernel_info& {
    r.names.push_back(std::make_unique<std::string>(backend + "." + variant + "." + gimbal::info(op).name +
                                                    "." + gimbal::info(format).name));
    r.rows.push_back({claims(r.names.back()->c_str(), op, set_of(format)), kernel, plan});
    gimbal_kernel_info& k = r.rows.back().info;
    if (k.limits == kTwoWays) limit(k, kTwo);
    else if (k.limits == kHeadSizes) limit(k, kHeads);
    else if (k.limits == kRouteSizes) limit(k, kRoutes);
    else limit(k, kLimits);
    return k;
  };
  for (DType type : kAllDTypes) {
    if (!is_weight(format_of(type))) continue;
    // Formats with the same packed layout share kernels.
    auto kernel = [&](const char* name) {
      r.names.push_back(
          std::make_unique<std::string>(std::string(name) + gimbal::info(first_alike(type)).name));
      return r.names.back()->c_str();
    };
    const gimbal_operand x = claim_of(set_of(format_of(type).x));
    add(OpKind::MatMul, type, kernel("mat_mul_"), plan_mat_mul).in[1] = x;
    gimbal_kernel_info& one_row = add(OpKind::MatMul, type, kernel("mat_vec_"), plan_mat_vec, "gpu_row");
    one_row.in[1] = x, one_row.rank = 4, limit(one_row, kOneRow);
    gimbal_kernel_info& few_rows = add(OpKind::MatMul, type, kernel("mat_few_"), plan_mat_few, "gpu_few");
    few_rows.in[1] = x, few_rows.rank = 1, limit(few_rows, kFewRows);
    if (matrix_units && (format_of(type).x == DType::A8_32 || format_of(type).x == DType::A8_256)) {
      gimbal_kernel_info& by_units =
          add(OpKind::MatMul, type, kernel("mat_matrix_"), plan_mat_matrix, "gpu_matrix");
      by_units.in[1] = x, by_units.rank = 2;
      gimbal_kernel_info& few_by_units =
          add(OpKind::MatMul, type, kernel("mat_matrix_few_"), plan_mat_matrix_few, "gpu_matrix_few");
      few_by_units.in[1] = x, few_by_units.rank = 3, limit(few_by_units, kFewRows);
    }
    add(OpKind::ExpertMatMul, type, kernel("mat_few_"), plan_mat_few).in[1] = x;
    gimbal_kernel_info& by_slot =
        add(OpKind::ExpertMatMul, type, kernel("mat_vec_"), plan_mat_vec, "gpu_row");
    by_slot.in[1] = x, by_slot.rank = 1, limit(by_slot, kSingleSlots);
    add(OpKind::Embed, type, kernel("embed_"), plan_embed);
  }
  for (const Cache& c : kCaches) {
    add(OpKind::Attention, c.type, c.attention, plan_attention);
    gimbal_kernel_info& few_rows = add(OpKind::Attention, c.type, c.attention_few, plan_attention, "gpu_few");
    few_rows.rank = 1, limit(few_rows, kFewHeads);
    add(OpKind::CacheWrite, c.type, c.write, c.plan_write);
  }
  add(OpKind::Quantize, DType::A8_32, "quantize_a8_32", plan_quantize);
  add(OpKind::Quantize, DType::A8_256, "quantize_a8_256", plan_quantize);
  add(OpKind::Quantize, DType::A8_ROW, "quantize_a8_row", plan_quantize_row);
  add(OpKind::RmsNorm, DType::F32, "rms_norm", plan_rms_norm);
  add(OpKind::Norm, DType::F32, "norm", plan_norm);
  add(OpKind::Route, DType::F32, "route", plan_route);
  add(OpKind::Combine, DType::F32, "combine", plan_combine);
  add(OpKind::ShortConv, DType::F32, "short_conv", plan_short_conv);
  add(OpKind::SelectiveScan, DType::F32, "selective_scan", plan_selective_scan);
  add(OpKind::DeltaRule, DType::F32, "delta_rule", plan_delta_rule);
  add(OpKind::GatedRule, DType::F32, "gated_rule", plan_gated_rule);
  add(OpKind::Slice, DType::F32, "slice", plan_concat);
  add(OpKind::Concat, DType::F32, "concat", plan_concat);
  add(OpKind::Rope, DType::F32, "rope", plan_rope);
  add(OpKind::Hadamard, DType::F32, "hadamard", plan_hadamard);
#define GIMBAL_ELEMENTWISE(number, id, name, ...) add(OpKind::id, DType::F32, name, plan_elementwise);
#include "ops/ops.def"
  add(OpKind::AddScaled, DType::F32, "add_scaled", plan_add_scaled);
  add(OpKind::SelectRows, DType::F32, "select_rows", plan_select_rows);
  add(OpKind::IndexScores, DType::F32, "index_scores_f32", plan_index_scores);
  add(OpKind::IndexScores, DType::F16, "index_scores_f16", plan_index_scores);
  add(OpKind::IndexScores, DType::BF16, "index_scores_bf16", plan_index_scores);
  add(OpKind::KeepTop, DType::F32, "keep_top", plan_keep_top);
  add(OpKind::TopK, DType::F32, "top_k", plan_top_k);
  add(OpKind::Sort, DType::F32, "sort", plan_sort);
  add(OpKind::ArgSort, DType::F32, "argsort", plan_sort);
  if (tensors) add_tensor_rows(r, backend);
  return r;
}

}  // namespace gimbal::gpu
