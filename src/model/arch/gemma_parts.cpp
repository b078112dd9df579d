#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/arch/gemma.h"

namespace gimbal::arch {

Value scaled_embedding(Recorder& m) {
  return m.embedded(m.matrix("token_embd.weight", m.config.width, m.config.vocabulary),
                    std::sqrt(float(m.config.width)));
}

Value layer_inputs(Recorder& m, int width, Value x) {
  ProgramBuilder& p = m.p;
  const int all =
      bounded(m, "the width of inputs per layer and block_count", int64_t(width) * m.config.layers);
  // Embeddings in place of tokens use the vectors of token 0, which is padding.
  const Value tokens = m.row_input("tokens of inputs", DType::I32, 0, [](const StepRow& r, std::byte* to) {
    const int32_t token = std::max(0, r.token);
    std::memcpy(to, &token, sizeof token);
  });
  const Value table = m.matrix("per_layer_token_embd.weight", all, m.config.vocabulary);
  const Value looked_up = p.scale(p.embed(table, tokens), std::sqrt(float(width)));
  const Value product =
      p.scale(project(m, "per_layer_model_proj", all, x), 1 / std::sqrt(float(m.config.width)));
  const Value normed = p.join_heads(rms_norm(m, "per_layer_proj_norm", p.split_heads(product, width)));
  return p.scale(p.add(normed, looked_up), std::sqrt(0.5f));
}

Value of_layer_input(Recorder& m, Value input, Value x) {
  const Value gate = project(m, "inp_gate", int(m.p.shape(input).dim[0]), x);
  const Value y = project(m, "proj", m.config.width, m.p.record(OpKind::GeluGlu, {gate, input}));
  return rms_norm(m, "post_norm", y);
}

Value sharing_attention(Recorder& m, const Attention& a, Value angles, std::optional<Remembered>& last,
                        bool own, Value x) {
  ProgramBuilder& p = m.p;
  auto heads = [&](const char* name, int n) {
    return p.split_heads(project(m, name, n * a.head_dim, x), a.head_dim);
  };
  auto turned = [&](const char* norm, Value v) {
    return p.rope(rms_norm(m, norm, v), angles, RopePairs::Halves);
  };
  const Value q = turned("attn_q_norm", heads("attn_q", a.heads));
  if (own) {
    // Without their own matrix, values equal the keys before norm and rotation.
    const Value k = heads("attn_k", a.kv_heads);
    const Value v = m.has("attn_v.weight") ? heads("attn_v", a.kv_heads) : k;
    last = remember(m, a, {q, turned("attn_k_norm", k), p.norm(v, NormKind::Rms, m.config.norm_epsilon)});
  } else {
    // Files may still have tensors that these layers do not use.
    for (const char* name : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"}) m.leave_out(name);
    if (!last)
      m.hyper.fail(Code::Malformed, m.config.arch + ": layer " + std::to_string(m.current_layer()) +
                                        " has no keys and values, and finds no earlier layer of its kind");
  }
  if (m.failed()) return x;
  return project(m, "attn_output", m.config.width, attend_to(m, a, *last, q));
}

}  // namespace gimbal::arch
