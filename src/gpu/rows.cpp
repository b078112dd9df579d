#include "gpu/rows.h"

#include "device/claims.h"
#include "ops/op.h"
#include "ops/shapes.h"
#include "tensor/dtype.h"

namespace gimbal::simt {
namespace {

// As claims() has them, and what follows from counting words in 32 bits.
constexpr gimbal_limit kBytes = {"bytes", GIMBAL_BYTES, GIMBAL_EVERY_VALUE, 0, 0, 0, int64_t(UINT32_MAX) * 4},
                       kRow = {"row", GIMBAL_ROW_VALUES, GIMBAL_EVERY_VALUE, 0, 0, 0, UINT32_MAX};
constexpr gimbal_limit kLimits[] = {kSizes[0], kSizes[1], kBytes, kRow};
constexpr gimbal_limit kTwo[] = {kTwoWays[0], kTwoWays[1], kTwoWays[2], kBytes, kRow};
constexpr gimbal_limit kHeads[] = {kHeadSizes[0], kHeadSizes[1], kHeadSizes[2], kBytes, kRow};
constexpr gimbal_limit kOneRow[] = {
    kSizes[0], kSizes[1], kBytes, kRow, {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 1}};

// Weight formats, and the part of the kernels' names that says how they lie in memory.
struct Weights {
  DType type;
  const char *mat_mul, *mat_vec, *embed;
};
#define WEIGHTS(T, kernel) \
  { DType::T, "mat_mul_" kernel, "mat_vec_" kernel, "embed_" kernel }
constexpr Weights kWeights[] = {
    WEIGHTS(F32, "f32"),       WEIGHTS(F16, "f16"),         WEIGHTS(BF16, "bf16"),
    WEIGHTS(Q8_0, "q8_0"),     WEIGHTS(Q4_0, "q4_0"),       WEIGHTS(Q4_1, "q4_1"),
    WEIGHTS(Q5_0, "q5_0"),     WEIGHTS(Q5_1, "q5_1"),       WEIGHTS(IQ4_NL, "iq4_nl"),
    WEIGHTS(MXFP4, "mxfp4"),   WEIGHTS(Q2_K, "q2_k"),       WEIGHTS(Q3_K, "q3_k"),
    WEIGHTS(Q4_K, "q4_k"),     WEIGHTS(Q5_K, "q5_k"),       WEIGHTS(Q6_K, "q6_k"),
    WEIGHTS(IQ4_XS, "iq4_xs"), WEIGHTS(TQ1_0, "ternary"),   WEIGHTS(TQ2_0, "ternary"),
    WEIGHTS(I2_S, "i2_s"),     WEIGHTS(IQ2_XXS, "iq2_xxs"), WEIGHTS(IQ2_XS, "iq2_xs"),
    WEIGHTS(IQ2_S, "iq2_xs"),  WEIGHTS(IQ3_XXS, "iq3_xxs"), WEIGHTS(IQ3_S, "iq3_s"),
    WEIGHTS(IQ1_S, "iq1_s"),   WEIGHTS(IQ1_M, "iq1_m"),
};
#undef WEIGHTS

struct Cache {
  DType type;
  const char *attention, *write;
  Plan plan_write;
};
constexpr Cache kCaches[] = {
    {DType::F32, "attention_f32", "cache_write_f32", plan_cache_write_floats},
    {DType::F16, "attention_f16", "cache_write_f16", plan_cache_write_floats},
    {DType::BF16, "attention_bf16", "cache_write_bf16", plan_cache_write_floats},
    {DType::Q8_0, "attention_q8_0", "cache_write_q8_0", plan_cache_write_blocks},
    {DType::Q4_0, "attention_q4_0", "cache_write_q4_0", plan_cache_write_blocks},
};

}  // namespace

Rows make_rows(const std::string& backend) {
  Rows r;
  auto add = [&](OpKind op, DType format, const char* kernel, Plan plan,
                 const char* variant = "simt") -> gimbal_kernel_info& {
    r.names.push_back(std::make_unique<std::string>(backend + "." + variant + "." + gimbal::info(op).name +
                                                    "." + gimbal::info(format).name));
    r.rows.push_back({claims(r.names.back()->c_str(), op, set_of(format)), kernel, plan});
    gimbal_kernel_info& k = r.rows.back().info;
    if (k.limits == kTwoWays) limit(k, kTwo);
    else if (k.limits == kHeadSizes) limit(k, kHeads);
    else limit(k, kLimits);
    return k;
  };
  for (const Weights& w : kWeights) {
    const gimbal_operand x = claim_of(set_of(activation_type(w.type)));
    add(OpKind::MatMul, w.type, w.mat_mul, plan_mat_mul).in[1] = x;
    gimbal_kernel_info& one_row = add(OpKind::MatMul, w.type, w.mat_vec, plan_mat_vec, "simt_row");
    one_row.in[1] = x, one_row.rank = 1, limit(one_row, kOneRow);
    add(OpKind::Embed, w.type, w.embed, plan_embed);
  }
  for (const Cache& c : kCaches) {
    add(OpKind::Attention, c.type, c.attention, plan_attention);
    add(OpKind::CacheWrite, c.type, c.write, c.plan_write);
  }
  add(OpKind::Quantize, DType::A8_32, "quantize_a8_32", plan_quantize);
  add(OpKind::Quantize, DType::A8_256, "quantize_a8_256", plan_quantize);
  add(OpKind::RmsNorm, DType::F32, "rms_norm", plan_rms_norm);
  add(OpKind::Rope, DType::F32, "rope", plan_rope);
#define GIMBAL_ELEMENTWISE(number, id, name, ...) add(OpKind::id, DType::F32, name, plan_elementwise);
#include "ops/ops.def"
  add(OpKind::SelectRows, DType::F32, "select_rows", plan_select_rows);
  add(OpKind::TopK, DType::F32, "top_k", plan_top_k);
  add(OpKind::Sort, DType::F32, "sort", plan_sort);
  add(OpKind::ArgSort, DType::F32, "argsort", plan_sort);
  return r;
}

}  // namespace gimbal::simt
