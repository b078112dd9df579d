// Llama and its many relatives: the plain decoder, SwiGLU, heads rotated.
// Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023; Dubey et al., "The Llama 3
// Herd of Models", 2024. With experts it is Mixtral: Jiang et al., "Mixtral of Experts", 2024.
// The same under other names: Cai et al., "InternLM2 Technical Report", 2024; Baidu, "ERNIE 4.5 Technical
// Report", 2025; XVERSE Technology, "XVERSE-13B", 2023. ChatGLM and GLM-4 fuse projections and rotate half of
// each head: GLM team, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4 All Tools", 2024.
// EXAONE 3 and openPangu rotate by halves: LG AI Research, "EXAONE 3.0 7.8B Instruction Tuned Language
// Model", 2024; Huawei, "Pangu Embedded", 2025. Refact and the large Baichuan lower the scores of distant
// positions (ALiBi) instead: Small Magellanic Cloud AI, "Refact 1.6B", 2023; Yang et al., "Baichuan 2: Open
// Large-scale Language Models", 2023.
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr float kLargestBias = 8;                           // that ALiBi subtracts for one position
constexpr int kRotatedBaichuan = 32, kBiasedBaichuan = 40;  // layers of the 7B and of the 13B

// Without `pairs` heads are not rotated.
void record_like_llama(Recorder& m, std::optional<RopePairs> pairs, float alibi = 0) {
  ProgramBuilder& p = m.p;
  Attention a = attention(m);
  a.alibi = alibi;
  std::optional<Value> angles;
  if (pairs) angles = rope_table(m);
  const bool mixed = m.hyper.count("expert_count", 0, 0) > 0;
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i, x);
    Heads h = project_heads(m, a, rms_norm(m, "attn_norm", x));
    if (pairs) h = rotated(m, h, *angles, *pairs);
    x = p.add(x, project(m, "attn_output", m.config.width, attend(m, a, h)));
    const Value y = rms_norm(m, "ffn_norm", x);
    x = p.add(x, mixed ? mixture(m, read_experts(m), y) : glu(m, y));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

void record_llama(Recorder& m) { record_like_llama(m, RopePairs::Adjacent); }
void record_by_halves(Recorder& m) { record_like_llama(m, RopePairs::Halves); }
void record_refact(Recorder& m) { record_like_llama(m, {}, kLargestBias); }

// Files do not say which of the two encodings of positions a model has.
void record_baichuan(Recorder& m) {
  const int layers = m.hyper.count("block_count");
  if (layers == kBiasedBaichuan) return record_like_llama(m, {}, kLargestBias);
  if (layers != kRotatedBaichuan)
    m.hyper.fail(Code::Unsupported,
                 format("baichuan: {} layers; this version computes the models of {}, whose heads are "
                        "rotated, and of {}, which have ALiBi",
                        layers, kRotatedBaichuan, kBiasedBaichuan));
  record_llama(m);
}

}  // namespace

extern const ModelArch llama, internlm2, ernie4_5, xverse, chatglm, exaone, pangu_embed, refact, baichuan;
const ModelArch llama{"llama", record_llama};
const ModelArch internlm2{"internlm2", record_llama};
const ModelArch ernie4_5{"ernie4_5", record_llama};
const ModelArch xverse{"xverse", record_llama};
const ModelArch chatglm{"chatglm", record_llama};
const ModelArch exaone{"exaone", record_by_halves};
const ModelArch pangu_embed{"pangu-embedded", record_by_halves};
const ModelArch refact{"refact", record_refact};
const ModelArch baichuan{"baichuan", record_baichuan};

}  // namespace gimbal::arch
