// Idefics 3 and SmolVLM: SigLIP, of whose rows squares of neighbours become one. Laurençon et al., "Building
// and better understanding vision-language models", 2024. InternVL: InternViT, likewise. Chen et al.,
// "InternVL: Scaling up Vision Foundation Models and Aligning for Generic Visual-Linguistic Tasks", 2024.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

void record_idefics3(Recorder& m) {
  Value x = patches(m);
  const Blocks b = blocks(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) x = block(m, b, i, x);
  m.no_layer();
  x = arch::layer_norm(m, "post_ln", x);
  m.output(Output::Hidden, product(m, "mm.model.fc", joined(m, x, patches_per_row(m))));
}

// The encoder of 6 billion weights norms by the root of the mean square.
void record_internvl(Recorder& m) {
  constexpr float kEpsilon = 1e-5f;  // of the norm before the last products, whatever the file's is
  Value x = patches(m);
  const bool large = m.config.width == 3200 && m.config.layers == 45;
  const Blocks b = blocks(m, {.norm = large ? Blocks::Norm::Rms : Blocks::Norm::Layer});
  for (int i = 0; i < m.config.layers && !m.failed(); i++) x = block(m, b, i, x);
  m.no_layer();
  x = joined(m, x, patches_per_row(m));
  const int width = arch::width_of(m, x);
  x = m.p.norm(x, NormKind::Layer, kEpsilon, m.vector("mm.model.mlp.0.weight", width),
               m.vector("mm.model.mlp.0.bias", width));
  x = m.p.map(OpKind::Gelu, product(m, "mm.model.mlp.1", x));
  m.output(Output::Hidden, product(m, "mm.model.mlp.3", x));
}

}  // namespace

extern const VisionArch idefics3, internvl;
const VisionArch idefics3{.projector = "idefics3", .record = record_idefics3, .legacy_names = true};
const VisionArch internvl{.projector = "internvl", .record = record_internvl};

}  // namespace gimbal::vision
