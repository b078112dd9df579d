// Decoders with experts that differ in the norms of their heads, in rotation and in routing.
// MiniMax-M2: MiniMax, 2025. ERNIE 4.5: Baidu, "ERNIE 4.5 Technical Report", 2025. Hunyuan-A13B: Tencent,
// "Hunyuan-A13B Technical Report", 2025. Ling (bailingmoe): Ling Team, "Every FLOP Counts: Scaling a 300B
// Mixture-of-Experts LING LLM without Premium GPUs", 2025; "Every Activation Boosted", 2025 (bailingmoe2).
// dots.llm1: rednote-hilab, "dots.llm1 Technical Report", 2025. DeepSeekMoE (deepseek): Dai et al.,
// "DeepSeekMoE: Towards Ultimate Expert Specialization in Mixture-of-Experts Language Models", 2024.
// K-EXAONE (exaone-moe): LG AI Research, "K-EXAONE Technical Report", 2026. Mellum 2: JetBrains, 2026.
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

enum class HeadNorms {
  None,
  Each,     // of q and k, before they are rotated
  Rotated,  // likewise, after that
  All,      // over all heads of q together, and over all of k
};

struct SparseDecoder {
  HeadNorms norms;
  RopePairs pairs;
  UsualRouting routing;
  // Of so many layers all but the last have a window, and rotate heads in these only; 0: no windows.
  int window_period = 0;
  // Rotates them in all layers, by the file's scaling only in those without a window.
  bool rotates_far = false;
};

Heads heads(Recorder& m, const SparseDecoder& d, const Attention& a, std::optional<Value> angles, Value x) {
  ProgramBuilder& p = m.p;
  Heads h = project_heads(m, a, x);
  auto norm_each = [&] { h.q = rms_norm(m, "attn_q_norm", h.q), h.k = rms_norm(m, "attn_k_norm", h.k); };
  if (d.norms == HeadNorms::Each) norm_each();
  if (d.norms == HeadNorms::All) {
    h.q = p.split_heads(rms_norm(m, "attn_q_norm", p.join_heads(h.q)), a.head_dim);
    h.k = p.split_heads(rms_norm(m, "attn_k_norm", p.join_heads(h.k)), a.head_dim);
  }
  if (angles) h = rotated(m, h, *angles, d.pairs);
  if (d.norms == HeadNorms::Rotated) norm_each();
  return h;
}

void record_sparse(Recorder& m, const SparseDecoder& d, const SparseLayers& layers) {
  ProgramBuilder& p = m.p;
  const Attention far = attention(m);
  Attention near = far;
  if (d.window_period) near.window = window_size(m);
  const Value far_angles = rope_table(m);
  Value near_angles = far_angles;
  if (d.window_period && d.rotates_far)
    near_angles =
        m.rope({.rotated = m.config.rotated, .base = m.config.rope_base, .scaled = false, .divided = false},
               "rope of windows");
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    const bool is_near = d.window_period && has_window(m, i, d.window_period);
    const Attention& a = is_near ? near : far;
    std::optional<Value> angles;
    if (is_near) angles = near_angles;
    else if (!d.window_period || d.rotates_far) angles = far_angles;
    const Heads h = heads(m, d, a, angles, rms_norm(m, "attn_norm", x));
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    x = p.add(x, sparse_feed_forward(m, layers, i, rms_norm(m, "ffn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_sparse(Recorder& m, const SparseDecoder& d) { record_sparse(m, d, read_sparse(m, d.routing)); }

void record_ernie4_5_moe(Recorder& m) {
  if (const int step = m.hyper.count("interleave_moe_layer_step"); step != 1)
    m.hyper.fail(Code::Unsupported,
                 format("{}.interleave_moe_layer_step is {}; this version computes 1: experts in every layer "
                        "behind the dense ones",
                        m.config.arch, step));
  record_sparse(m, {HeadNorms::None, RopePairs::Adjacent, {}});
}

// The expert for all rows is as wide as the dense layers of other models, unless the file says otherwise.
void record_hunyuan_moe(Recorder& m) {
  SparseLayers l = read_sparse(m);
  if (!l.shared) l.shared = ff_width(m, 0);
  record_sparse(m, {HeadNorms::Rotated, RopePairs::Halves, {}}, l);
}

// Here the width in the file is that of one of the experts for all rows.
void record_bailingmoe2(Recorder& m) {
  SparseLayers l = read_sparse(m, {.normalised = false});
  if (m.hyper.has("expert_shared_feed_forward_length"))
    l.shared = bounded(m, "expert_shared_count and expert_shared_feed_forward_length",
                       int64_t(l.shared) * m.hyper.count("expert_shared_count"));
  record_sparse(m, {HeadNorms::Each, RopePairs::Halves, {}}, l);
}

// Here there is one expert for all rows, of the width of the others unless the file says otherwise.
void record_exaone_moe(Recorder& m) {
  SparseLayers l = read_sparse(m, {.normalised = false});
  l.shared = m.hyper.count("expert_shared_feed_forward_length", l.experts.width);
  record_sparse(m, {HeadNorms::Each, RopePairs::Halves, {}, 4}, l);
}

void record_mellum(Recorder& m) {
  const bool windows = m.hyper.count("attention.sliding_window", 0, 0) > 0;
  record_sparse(m, {HeadNorms::Each, RopePairs::Halves, {}, windows ? 4 : 0, true});
}

}  // namespace

extern const ModelArch minimax_m2, ernie4_5_moe, hunyuan_moe, bailingmoe, bailingmoe2, dots1, deepseek,
    exaone_moe, mellum;
const ModelArch minimax_m2{"minimax-m2", [](Recorder& m) {
                             record_sparse(m, {HeadNorms::All, RopePairs::Halves, {}});
                           }};
const ModelArch ernie4_5_moe{"ernie4_5-moe", record_ernie4_5_moe};
const ModelArch hunyuan_moe{"hunyuan-moe", record_hunyuan_moe};
const ModelArch bailingmoe{"bailingmoe", [](Recorder& m) {
                             record_sparse(m, {HeadNorms::None, RopePairs::Adjacent, {.normalised = false}});
                           }};
const ModelArch bailingmoe2{"bailingmoe2", record_bailingmoe2, configure_without_nextn};
const ModelArch dots1{"dots1", [](Recorder& m) {
                        record_sparse(m, {HeadNorms::Each, RopePairs::Halves, {.normalised = false}});
                      }};
const ModelArch deepseek{"deepseek", [](Recorder& m) {
                           record_sparse(m, {HeadNorms::None, RopePairs::Adjacent, {.normalised = false}});
                         }};
const ModelArch exaone_moe{"exaone-moe", record_exaone_moe, configure_without_nextn};
const ModelArch mellum{"mellum", record_mellum};

}  // namespace gimbal::arch
