#include "gpu/rows.h"

#include "ops/op.h"
#include "ops/shapes.h"
#include "tensor/dtype.h"

namespace gimbal::simt {
namespace {

constexpr DTypeSet kF32 = set_of(DType::F32), kI32 = set_of(DType::I32);

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
  auto add = [&](OpKind op, DType named, gimbal_layout layout, DTypeSet in0, DTypeSet in1, DTypeSet out,
                 const char* kernel, Plan plan, const char* variant = "simt", int rank = 0,
                 int most_rows = 0) {
    r.names.push_back(std::make_unique<std::string>(backend + "." + variant + "." + gimbal::info(op).name +
                                                    "." + gimbal::info(named).name));
    r.rows.push_back({{r.names.back()->c_str(), uint16_t(op), int16_t(rank), GIMBAL_EXACT, uint8_t(layout),
                       in0, in1, out, 1, 0, most_rows, 0},
                      kernel,
                      plan});
  };
  for (const Weights& w : kWeights) {
    const DTypeSet set = set_of(w.type), x = set_of(activation_type(w.type));
    add(OpKind::MatMul, w.type, GIMBAL_PACKED, set, x, kF32, w.mat_mul, plan_mat_mul);
    add(OpKind::MatMul, w.type, GIMBAL_PACKED, set, x, kF32, w.mat_vec, plan_mat_vec, "simt_row", 1, 1);
    add(OpKind::Embed, w.type, GIMBAL_PACKED, set, kI32, kF32, w.embed, plan_embed);
  }
  for (const Cache& c : kCaches) {
    add(OpKind::Attention, c.type, GIMBAL_DENSE, kF32, set_of(c.type), kF32, c.attention, plan_attention);
    add(OpKind::CacheWrite, c.type, GIMBAL_CACHE, set_of(c.type), kF32, set_of(c.type), c.write,
        c.plan_write);
  }
  auto dense = [&](OpKind op, DType named, DTypeSet in1, DTypeSet out, const char* kernel, Plan plan) {
    add(op, named, GIMBAL_DENSE, kF32, in1, out, kernel, plan);
  };
  dense(OpKind::Quantize, DType::A8_32, kF32, set_of(DType::A8_32), "quantize_a8_32", plan_quantize);
  dense(OpKind::Quantize, DType::A8_256, kF32, set_of(DType::A8_256), "quantize_a8_256", plan_quantize);
  dense(OpKind::RmsNorm, DType::F32, kF32, kF32, "rms_norm", plan_rms_norm);
  dense(OpKind::Rope, DType::F32, kF32, kF32, "rope", plan_rope);
  dense(OpKind::SwiGlu, DType::F32, kF32, kF32, "swiglu", plan_elementwise);
  dense(OpKind::SquaredReluGlu, DType::F32, kF32, kF32, "squared_relu_glu", plan_elementwise);
  dense(OpKind::Scale, DType::F32, kF32, kF32, "scale", plan_elementwise);
  dense(OpKind::Add, DType::F32, kF32, kF32, "add", plan_elementwise);
  dense(OpKind::SelectRows, DType::F32, kI32, kF32, "select_rows", plan_select_rows);
  dense(OpKind::TopK, DType::F32, kF32, kF32, "top_k", plan_sort);
  dense(OpKind::Sort, DType::F32, kF32, kF32, "sort", plan_sort);
  dense(OpKind::ArgSort, DType::F32, kF32, kI32, "argsort", plan_sort);
  return r;
}

}  // namespace gimbal::simt
