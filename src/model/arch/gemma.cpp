// Gemma, Gemma 2 and Gemma 3: GELU gates, embeddings times the root of their width; from Gemma 2 on layers
// with a window, and norms after each block as well as before it. Gemma Team, "Gemma: Open Models Based on
// Gemini Research and Technology", 2024; "Gemma 2: Improving Open Language Models at a Practical Size", 2024;
// "Gemma 3 Technical Report", 2025. Vera et al., "EmbeddingGemma: Powerful and Lightweight Text
// Representations", 2025.
#include <cmath>

#include "model/arch/gemma.h"

namespace gimbal::arch {
namespace {

// The largest model of a generation divides the scores by the root of width / heads. No key of GGUF's files
// has this; the number of layers decides. Folders say it themselves where it is not the size of a head.
Attention scaled(Recorder& m, int layers_of_largest) {
  Attention a = attention(m);
  if (m.config.layers == layers_of_largest) a.scale = 1 / std::sqrt(float(m.config.width / m.config.heads));
  a.scale = float(m.hyper.positive("attention.scale", a.scale));
  return a;
}

// The differences between layers with a window and without one.
struct GemmaKind {
  Attention attention;
  Value angles;
};

Value block(Recorder& m, const GemmaKind& kind, bool normed_heads, Value x) {
  ProgramBuilder& p = m.p;
  Heads h = project_heads(m, kind.attention, rms_norm(m, "attn_norm", x));
  if (normed_heads) h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k);
  const Value y = attend(m, kind.attention, rotated(m, h, kind.angles, RopePairs::Halves));
  x = p.add(x, rms_norm(m, "post_attention_norm", project(m, "attn_output", m.config.width, y)));
  const Value z = glu(m, rms_norm(m, "ffn_norm", x), OpKind::GeluGlu);
  return p.add(x, rms_norm(m, "post_ffw_norm", z));
}

void record_gemma(Recorder& m) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m);
  Value x = scaled_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    const Heads h = rotated(m, project_heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x), OpKind::GeluGlu));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_gemma2(Recorder& m) {
  GemmaKind all{scaled(m, 46), rope_table(m)};
  all.attention.cap = float(m.hyper.number("attn_logit_softcapping", 50, 0));
  GemmaKind local = all;
  local.attention.window = window_size(m, 4096);
  Value x = scaled_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = block(m, has_window(m, i, 2) ? local : all, false, x);
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), 1,
         float(m.hyper.number("final_logit_softcapping", 30, 0)));
}

void record_gemma3(Recorder& m) {
  GemmaKind all{scaled(m, 62), rope_table(m)};
  GemmaKind local = all;
  if (m.hyper.count("attention.sliding_window", 0, 0) > 0)
    local = {all.attention, window_rope_table(m)}, local.attention.window = window_size(m);
  // Rows of a picture see each other.
  if (m.options.embeddings) {
    all.attention.seen = m.seen_in_pictures(-1);
    local.attention.seen =
        local.attention.window ? m.seen_in_pictures(local.attention.window - 1) : all.attention.seen;
  }
  Value x = scaled_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = block(m, has_window(m, i, 6) ? local : all, true, x);
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)), 1,
         float(m.hyper.number("final_logit_softcapping", 0, 0)));
}

// Gemma 3 as an encoder: a row attends to earlier and later ones, in layers with a window to half of it on
// either side. Two products map a text's mean into another space; they are linear, so the mean can be taken
// after them.
void record_gemma_embedding(Recorder& m) {
  GemmaKind all{attention(m), rope_table(m)}, local{all.attention, window_rope_table(m)};
  const int half = window_size(m) / 2;
  all.attention.seen = m.seen_both(-1, -1), local.attention.seen = m.seen_both(half, half);
  Value x = scaled_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = block(m, has_window(m, i, 6) ? local : all, true, x);
  }
  x = rms_norm(m, "output_norm", wanted(m, x));
  for (const char* dense : {"dense_2", "dense_3"})
    if (m.has(dense + std::string(".weight")))
      x = project(m, dense, m.hyper.count(dense + std::string("_feat_out")), x);
  m.output(Output::Hidden, x);
}

}  // namespace

extern const ModelArch gemma, gemma2, gemma3, gemma_embedding;
const ModelArch gemma{"gemma", record_gemma};
const ModelArch gemma2{"gemma2", record_gemma2};
const ModelArch gemma3{"gemma3", record_gemma3};
const ModelArch gemma_embedding{"gemma-embedding", record_gemma_embedding, configure_attention, true};

}  // namespace gimbal::arch
