// Mamba and Mamba 2: layers that are a selective scan and nothing else.
// Gu, Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023; Dao, Gu, "Transformers
// are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality", 2024. With
// norms on step, b and c it is Falcon Mamba: Zuo et al., "Falcon Mamba", 2024.
#include "model/arch/recurrent.h"

namespace gimbal::arch {
namespace {

void record_mamba(Recorder& m, Value (*mixer)(Recorder&, Value x)) {
  Value x = token_embedding(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    m.layer(i);
    x = m.p.add(x, mixer(m, rms_norm(m, "attn_norm", x)));
  }
  logits(m, rms_norm(m, "output_norm", wanted(m, x)));
}

Value first(Recorder& m, Value x) {
  const bool normed = m.hyper.flag("ssm.dt_b_c_rms", false);
  return mamba_mixer(m, x, normed ? StepNorm::Unweighted : StepNorm::None);
}
Value second(Recorder& m, Value x) { return mamba2_mixer(m, x); }

}  // namespace

extern const ModelArch mamba, mamba2;
const ModelArch mamba{"mamba", [](Recorder& m) { record_mamba(m, first); }, without_attention};
const ModelArch mamba2{"mamba2", [](Recorder& m) { record_mamba(m, second); }, without_attention};

}  // namespace gimbal::arch
