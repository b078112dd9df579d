// Qwen3-Next and Qwen3.5: gated delta nets, with gated attention in every few layers.
// Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024; Qwen Team, "Qwen3-Next", 2025.
#include "model/arch/nextn.h"
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

// attn_q has for each head its query, then the gate of its result.
Value gated_attention(Recorder& m, const Attention& a, Value angles, Value x) {
  ProgramBuilder& p = m.p;
  const int d = a.head_dim;
  const Value both = p.split_heads(project(m, "attn_q", 2 * a.heads * d, x), 2 * d);
  auto heads = [&](const char* name, int width) {
    return p.split_heads(project(m, name, a.kv_heads * width, x), width);
  };
  const Heads h{rms_norm(m, "attn_q_norm", p.slice(both, 0, d)),
                rms_norm(m, "attn_k_norm", heads("attn_k", d)), heads("attn_v", a.value_dim)};
  const Value seen = attend(m, a, rotated(m, h, angles, RopePairs::Halves));
  const Value gate = p.map(OpKind::Sigmoid, p.join_heads(p.slice(both, d, d)));
  return project(m, "attn_output", m.config.width, p.mul(seen, gate));
}

Value delta_net_35(Recorder& m, Value x) {
  const DeltaSizes s = read_delta(m);
  const Value qkv = project(m, "attn_qkv", 2 * s.keys() + s.values(), x),
              z = project(m, "attn_gate", s.values(), x), beta = project(m, "ssm_beta", s.value_heads, x);
  const Value alpha =
      m.product("ssm_alpha", 0, s.value_heads, s.value_heads, x, m.vector("ssm_dt.bias", s.value_heads));
  return delta_net(m, s, {qkv, z, beta, alpha, HeadMap::Modulo});
}

// Qwen3-Next's matrices are ordered by head of keys: ssm_ba gives beta and alpha of its heads of values;
// ssm_in (in older files instead of attn_qkv and attn_gate) gives q, k, v and z.
Value delta_net_next(Recorder& m, Value x) {
  ProgramBuilder& p = m.p;
  const DeltaSizes s = read_delta(m);
  const int each = s.value_heads / s.key_heads, v = each * s.head;
  auto part = [&](Value all, int first, int n) {
    return p.join_heads(p.slice(p.split_heads(all, int(p.shape(all).dim[0]) / s.key_heads), first, n));
  };
  const Value ba = project(m, "ssm_ba", 2 * s.value_heads, x);
  const Value beta = part(ba, 0, each), unbiased = part(ba, each, each);
  const Value alpha = p.add(unbiased, for_each_row(m, m.vector("ssm_dt.bias", s.value_heads), unbiased));
  Value qkv, z;
  if (m.has("ssm_in.weight")) {
    const Value all = project(m, "ssm_in", 2 * s.keys() + 2 * s.values(), x);
    auto one = [&](int first, int n) { return p.split_heads(part(all, first, n), n * s.key_heads); };
    const Value q = one(0, s.head), k = one(s.head, s.head);
    const Value keys = p.concat(q, k);
    qkv = p.join_heads(p.concat(keys, one(2 * s.head, v)));
    z = part(all, 2 * s.head + v, v);
  } else {
    qkv = project(m, "attn_qkv", 2 * s.keys() + s.values(), x);
    z = project(m, "attn_gate", s.values(), x);
  }
  return delta_net(m, s, {qkv, z, beta, alpha, HeadMap::Blocks});
}

Value experts(Recorder& m, Value x) {
  const Value mixed = mixture(m, read_experts(m), x);
  return m.has("ffn_up_shexp.weight") ? m.p.add(mixed, gated_shared_expert(m, x)) : mixed;
}
Value dense(Recorder& m, Value x) { return glu(m, x); }

bool is_recurrent(Recorder& m, int layer) {
  if (m.hyper.has("attention.recurrent_layers")) return m.hyper.flag_of("attention.recurrent_layers", layer);
  return (layer + 1) % m.hyper.count("full_attention_interval", 4) != 0;
}

using Block = Value (*)(Recorder&, Value x);
void record_qwen35(Recorder& m, Block recurrent, Block feed_forward) {
  ProgramBuilder& p = m.p;
  const Value angles = rope_table(m, RopeSections::InTurn);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Value y = rms_norm(m, "attn_norm", x);
    const Attention a = attention_of_layer(m, i).value_or(attention(m));
    x = p.add(x, is_recurrent(m, i) ? recurrent(m, y) : gated_attention(m, a, angles, y));
    x = p.add(x, feed_forward(m, rms_norm(m, "post_attention_norm", x)));
  }
  logits_and_states(m, x);
}

void record_qwen35_nextn(Recorder& m, Block feed_forward) {
  ProgramBuilder& p = m.p;
  const Value angles = rope_table(m, RopeSections::InTurn);
  const Nextn n = begin_nextn(m);
  const Attention a = attention_of_layer(m, n.layer).value_or(attention(m));
  const Value x = p.add(n.x, gated_attention(m, a, angles, rms_norm(m, "attn_norm", n.x)));
  end_nextn(m, n, p.add(x, feed_forward(m, rms_norm(m, "post_attention_norm", x))));
}
void record_dense_nextn(Recorder& m) { record_qwen35_nextn(m, dense); }
void record_experts_nextn(Recorder& m) { record_qwen35_nextn(m, experts); }

const ModelArch qwen35_nextn{"qwen35", record_dense_nextn, configure_nextn};
const ModelArch qwen35moe_nextn{"qwen35moe", record_experts_nextn, configure_nextn};
const ModelArch qwen3next_nextn{"qwen3next", record_experts_nextn, configure_nextn};

}  // namespace

extern const ModelArch qwen35, qwen35moe, qwen3next;
const ModelArch qwen35{"qwen35", [](Recorder& m) { record_qwen35(m, delta_net_35, dense); },
                       configure_without_nextn, false, &qwen35_nextn};
const ModelArch qwen35moe{"qwen35moe", [](Recorder& m) { record_qwen35(m, delta_net_35, experts); },
                          configure_without_nextn, false, &qwen35moe_nextn};
const ModelArch qwen3next{"qwen3next", [](Recorder& m) { record_qwen35(m, delta_net_next, experts); },
                          configure_without_nextn, false, &qwen3next_nextn};

}  // namespace gimbal::arch
