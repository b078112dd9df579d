// Qwen's dense decoders. Qwen2 and 2.5: a llama with biases on q, k and v, whose heads are rotated by halves.
// The first Qwen: the same with q, k and v in one matrix; its feed_forward_length counts gate and up
// together. Qwen3: no biases, but every head of q and k is normed before it is rotated. The heads of the VL
// models are rotated in sections, by time, line and column. Seed-OSS is a Qwen2 whose second norm has another
// name in files; PaddleOCR-VL's text model a Qwen2-VL that has no biases. Bai et al., "Qwen Technical
// Report", 2023; Yang et al., "Qwen2 Technical Report", 2024; "Qwen3 Technical Report", 2025; Wang et al.,
// "Qwen2-VL", 2024; ByteDance Seed, "Seed-OSS Open-Source Models", 2025.
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

Heads biased(Recorder& m, const Attention& a, Value x) { return project_heads(m, a, x, Bias::Needed); }

Heads plain(Recorder& m, const Attention& a, Value x) { return project_heads(m, a, x); }

Heads normed(Recorder& m, const Attention& a, Value x) {
  const Heads h = project_heads(m, a, x);
  return {rms_norm(m, "attn_q_norm", h.q), rms_norm(m, "attn_k_norm", h.k), h.v};
}

struct Variant {
  Heads (*heads)(Recorder&, const Attention&, Value);
  const char* second_norm = "ffn_norm";
  RopeSections sections = RopeSections::Blocks;
  int halves = 1;          // feed_forward_length counts this many
  bool deepstack = false;  // the first layers' outputs get parts of a picture's embedding
};

void record_qwen(Recorder& m, const Variant& variant) {
  ProgramBuilder& p = m.p;
  const Attention a = attention(m);
  const Value angles = rope_table(m, variant.sections);
  const int deepstack = variant.deepstack ? deepstack_layers(m) : 0;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const Heads h = rotated(m, variant.heads(m, a, rms_norm(m, "attn_norm", x)), angles, RopePairs::Halves);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(
        x, glu(m, rms_norm(m, variant.second_norm, x), OpKind::SwiGlu, "", ff_width(m, i) / variant.halves));
    if (i < deepstack) x = m.add_embedded(x);
  }
  const Value last = rms_norm(m, "output_norm", wanted(m, x));
  // Of a reranker's vocabulary only "yes" and "no" are left, by which its last token answers.
  if (is_reranker(m)) m.leave_out("output.weight"), m.output(Output::Hidden, ranking_head(m, 2, last));
  else logits(m, last);
}

}  // namespace

extern const ModelArch qwen, qwen2, qwen2vl, qwen3, qwen3vl, seed_oss, paddleocr;
const ModelArch qwen{"qwen", [](Recorder& m) { record_qwen(m, {.heads = biased, .halves = 2}); }};
const ModelArch qwen2{"qwen2", [](Recorder& m) { record_qwen(m, {biased}); }};
const ModelArch qwen2vl{"qwen2vl", [](Recorder& m) { record_qwen(m, {biased}); }};
const ModelArch qwen3{"qwen3", [](Recorder& m) { record_qwen(m, {normed}); }};
const ModelArch qwen3vl{"qwen3vl", [](Recorder& m) {
                          record_qwen(m,
                                      {.heads = normed, .sections = RopeSections::InTurn, .deepstack = true});
                        }};
const ModelArch paddleocr{"paddleocr", [](Recorder& m) { record_qwen(m, {plain}); }};
const ModelArch seed_oss{"seed_oss", [](Recorder& m) { record_qwen(m, {plain, "post_attention_norm"}); }};

}  // namespace gimbal::arch
