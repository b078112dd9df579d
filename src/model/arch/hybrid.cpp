// Hybrids of attention and Mamba.
// Falcon-H1, both side by side in each layer: Zuo et al., "Falcon-H1: A Family of Hybrid-Head Language
// Models", 2025. Nemotron-H, whose layers are one block each: NVIDIA, "Nemotron-H: A Family of Accurate and
// Efficient Hybrid Mamba-Transformer Models", 2025. Jamba, with experts in some layers: Lieber et al.,
// "Jamba: A Hybrid Transformer-Mamba Language Model", 2024. Granite 4.0-H: IBM, 2025.
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

Value attended(Recorder& m, const Attention& a, const Heads& h) {
  return project(m, "attn_output", m.config.width, attend(m, a, h));
}
Value unrotated_attention(Recorder& m, const Attention& a, Value x) {
  return attended(m, a, project_heads(m, a, x));
}

// The layer's second norm: `name` with no ".weight" behind it.
Value bare_rms_norm(Recorder& m, const std::string& name, Value x) {
  return m.p.rms_norm(x, m.vector(name, m.config.width), m.config.norm_epsilon);
}

void record_falcon_h1(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Value y = rms_norm(m, "attn_norm", x);
    const Value seen = attended(m, a, rotated(m, project_heads(m, a, y), angles, RopePairs::Halves));
    x = p.add(x, p.add(seen, mamba2_mixer(m, y, OutputNorm::Optional)));
    x = p.add(x, glu(m, bare_rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

// Beside an expert for all rows others without gates, which may compute in a narrower space than the model.
Value nemotron_experts(Recorder& m, int layer, Value x) {
  Experts e = read_experts(m, {.gating = Gating::Sigmoid, .normalised = false}, layer);
  e.activation = OpKind::SquaredRelu, e.gated = false;
  const Value scores = project(m, "ffn_gate_inp", e.count, x);
  const int narrow = m.hyper.count("moe_latent_size", 0, 0);
  Value y =
      narrow ? mixture(m, e, project(m, "ffn_latent_down", narrow, x), scores) : mixture(m, e, x, scores);
  if (narrow) y = project(m, "ffn_latent_up", m.config.width, y);
  const Value up = project(m, "ffn_up_shexp", m.hyper.count("expert_shared_feed_forward_length"), x);
  return m.p.add(y, project(m, "ffn_down_shexp", m.config.width, m.p.map(OpKind::SquaredRelu, up)));
}

void record_nemotron_h(Recorder& m) {
  const bool mixed = m.hyper.count("expert_count", 0, 0) > 0;
  auto block = [&](int layer, Value y) {
    if (m.hyper.count_of("feed_forward_length", layer) > 0)
      return mixed ? nemotron_experts(m, layer, y) : mlp(m, y, OpKind::SquaredRelu);
    if (const auto a = attention_of_layer(m, layer)) return unrotated_attention(m, *a, y);
    return mamba2_mixer(m, y);
  };
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    x = m.p.add(x, block(i, rms_norm(m, "attn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_jamba(Recorder& m) {
  ProgramBuilder& p = m.p;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    Value y = rms_norm(m, "attn_norm", x);
    const auto a = attention_of_layer(m, i);
    x = p.add(x, a ? unrotated_attention(m, *a, y) : mamba_mixer(m, y, StepNorm::Weighted));
    y = rms_norm(m, "ffn_norm", x);
    if (m.has("ffn_gate_inp.weight")) {
      x = p.add(x, mixture(m, read_experts(m, {.normalised = false}), y));
    } else {
      x = p.add(x, glu(m, y));
    }
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_granite_hybrid(Recorder& m) {
  ProgramBuilder& p = m.p;
  Hyperparameters& h = m.hyper;
  const auto residual = float(h.positive("residual_scale", 1));
  const bool mixed = h.count("expert_count", 0, 0) > 0;
  const int shared = h.count("expert_shared_feed_forward_length", 0, 0);
  std::optional<Value> angles;  // empty: the key disables rotation
  if (h.flag("rope.scaling.finetuned", true)) angles = rope_table(m);
  Value x = token_embedding(m, float(h.positive("embedding_scale", 1)));
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    Value y = rms_norm(m, "attn_norm", x);
    if (auto a = attention_of_layer(m, i)) {
      a->scale = float(h.positive("attention.scale", a->scale));
      const Heads heads = project_heads(m, *a, y);
      y = attended(m, *a, angles ? rotated(m, heads, *angles, RopePairs::Adjacent) : heads);
    } else {
      y = mamba2_mixer(m, y);
    }
    x = p.add(x, p.scale(y, residual));
    y = rms_norm(m, "ffn_norm", x);
    Value z = mixed ? mixture(m, read_experts(m), y) : glu(m, y);
    if (mixed && shared) z = p.add(z, glu(m, y, OpKind::SwiGlu, "_shexp", shared));
    x = p.add(x, p.scale(z, residual));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), float(1 / h.positive("logit_scale", 1)));
}

}  // namespace

extern const ModelArch falcon_h1, nemotron_h, nemotron_h_moe, jamba, granitehybrid;
const ModelArch falcon_h1{"falcon-h1", record_falcon_h1};
const ModelArch nemotron_h{"nemotron_h", record_nemotron_h, configure_without_nextn};
const ModelArch nemotron_h_moe{"nemotron_h_moe", record_nemotron_h, configure_without_nextn};
const ModelArch jamba{"jamba", record_jamba};
const ModelArch granitehybrid{"granitehybrid", record_granite_hybrid};

}  // namespace gimbal::arch
