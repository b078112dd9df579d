// Llama and its many relatives: RMS norm, rotary attention with grouped heads, SwiGLU.
// Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023; Dubey et al., "The Llama 3
// Herd of Models", 2024.
#include "base/fixed_math.h"
#include "base/format.h"
#include "model/arch.h"

namespace gimbal::arch {
namespace {

Status configure(const Gguf& file, Config& c) {
  c.rope_pairs = RopePairs::Adjacent;
  if (file.unsigned_integer("llama.expert_count").value_or(0) > 0)
    return Error{
        Code::Unsupported,
        format("{}: a mixture of experts (llama.expert_count) is not computed by this version", file.path()),
        ""};
  if (auto v = file.unsigned_integer("llama.attention.value_length"); v && int64_t(*v) != c.head_dim)
    return Error{Code::Unsupported,
                 format("{}: values of {} per head with keys of {} are not computed by this version",
                        file.path(), *v, c.head_dim),
                 ""};
  return Done{};
}

void record(Recorder& m) {
  const Config& c = m.config;
  ProgramBuilder& p = m.p;
  const int q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const auto scale = float(1 / __builtin_sqrt(double(c.head_dim)));

  Value table = m.matrix("token_embd.weight", c.width, c.vocabulary);
  Value x = p.embed(table, m.step.tokens);
  for (int i = 0; i < c.layers && !m.failed(); i++) {
    m.layer(i);
    Value h = p.rms_norm(x, m.vector("attn_norm.weight", c.width), c.norm_epsilon);
    Value q =
        p.linear(m.matrix("attn_q.weight", c.width, q_width), h, m.optional_vector("attn_q.bias", q_width));
    Value k =
        p.linear(m.matrix("attn_k.weight", c.width, kv_width), h, m.optional_vector("attn_k.bias", kv_width));
    Value v =
        p.linear(m.matrix("attn_v.weight", c.width, kv_width), h, m.optional_vector("attn_v.bias", kv_width));
    Value a = m.self_attention(q, k, v, scale);
    x = p.add(x, p.linear(m.matrix("attn_output.weight", q_width, c.width), a,
                          m.optional_vector("attn_output.bias", c.width)));

    h = p.rms_norm(x, m.vector("ffn_norm.weight", c.width), c.norm_epsilon);
    Value gate = p.linear(m.matrix("ffn_gate.weight", c.width, c.ff_width), h);
    Value up = p.linear(m.matrix("ffn_up.weight", c.width, c.ff_width), h);
    x = p.add(x, p.linear(m.matrix("ffn_down.weight", c.ff_width, c.width), p.swiglu(gate, up)));
  }
  m.no_layer();
  x = p.select_rows(x, m.step.out_rows);
  x = p.rms_norm(x, m.vector("output_norm.weight", c.width), c.norm_epsilon);
  // Without an output matrix of its own, the model reads its answer off the embedding table.
  Value head = m.has("output.weight") ? m.matrix("output.weight", c.width, c.vocabulary) : table;
  p.output(p.linear(head, x));
}

}  // namespace

extern const ModelArch llama;
const ModelArch llama{"llama", configure, record};

}  // namespace gimbal::arch
