// EAGLE-3: a draft head of one decoder layer. A row joins the states of three of the target's layers into
// one, and its layer attends with this and the embedding of the next token beside each other. For further
// guesses the head's own result takes the place of the joined state. Li et al., "EAGLE-3: Scaling up
// Inference Acceleration of Large Language Models via Training-Time Test", 2025.
#include "base/format.h"
#include "model/arch/blocks.h"

namespace gimbal::arch {
namespace {

constexpr int kTargetLayers = 3;

// The joined state of rows that have the target's, or the row's own. One of the two is zero, so the sum is
// the other.
Value state_before(Recorder& m) {
  const int d = m.config.width;
  Value all = m.target_states(bounded(m, "target_hidden_size and its layers",
                                      int64_t(kTargetLayers) * m.hyper.count("target_hidden_size")));
  if (m.hyper.flag("norm_before_fc", false)) all = rms_norm(m, "enc.output_norm", all);
  return m.p.add(m.product("fc", 0, d, d, all), m.own_states());
}

void record_eagle3(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int d = m.config.width;
  if (m.config.layers != 1)
    m.hyper.fail(Code::Unsupported,
                 format("eagle3: {} layers; this version computes heads of one", m.config.layers));
  const Attention a = attention(m);
  const Value angles = rope_table(m), embedding = token_embedding(m), state = state_before(m);
  m.layer(0);
  const Value e = rms_norm(m, "attn_norm", embedding), s = rms_norm(m, "attn_norm_2", state);
  const Value both = p.join_heads(p.concat(p.split_heads(e, d), p.split_heads(s, d)));
  const Heads h = rotated(m, project_heads(m, a, both), angles, RopePairs::Adjacent);
  Value x = p.add(m.hyper.flag("norm_before_residual", false) ? s : state,
                  project(m, "attn_output", d, attend(m, a, h)));
  x = p.add(x, glu(m, rms_norm(m, "ffn_norm", x)));
  m.no_layer();
  m.output(Output::States, x);
  m.leave_out("d2t");  // of the drafter
  m.output(Output::Logits, project(m, "output", std::max(1, m.rows("output.weight")),
                                   rms_norm(m, "output_norm", wanted(m, x))));
}

}  // namespace

extern const ModelArch eagle3;
const ModelArch eagle3{"eagle3", record_eagle3};

}  // namespace gimbal::arch
