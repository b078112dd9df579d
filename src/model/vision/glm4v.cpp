// GLM-4.1V and its successors, and GLM-OCR, which norms heads but has no table of positions: heads that lines
// and columns rotate; squares of neighbours become one row. GLM-V Team, "GLM-4.1V-Thinking", 2025.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

void record_glm4v(Recorder& m) {
  constexpr float kEpsilon = 1e-5f;  // of the norm between the products, whatever the file's is
  ProgramBuilder& p = m.p;
  Value x = times_kernel(m, pixels(m));
  if (m.has("norm_embd.weight")) x = arch::rms_norm(m, "norm_embd", x);
  x = p.add(x, positions(m));
  const Blocks b =
      blocks(m, {.norm = Blocks::Norm::Rms, .gated = true, .angles = patch_angles(m, PatchAngles::Qwen)});
  x = arch::rms_norm(m, "post_ln", all_blocks(m, b, x));
  x = product(m, "mm.model.fc", product(m, "mm.patch_merger", joined(m, x, patches_per_row(m))));
  const int width = arch::width_of(m, x);
  x = p.map(OpKind::GeluErf, p.norm(x, NormKind::Layer, kEpsilon, m.vector("mm.post_norm.weight", width),
                                    m.optional_vector("mm.post_norm.bias", width)));
  m.output(Output::Hidden, product(m, "mm.down", p.swiglu(product(m, "mm.gate", x), product(m, "mm.up", x))));
}

}  // namespace

extern const VisionArch glm4v;
const VisionArch glm4v{.projector = "glm4v",
                       .record = record_glm4v,
                       .positions = PatchPositions::Cubic,
                       .grid = true,
                       .features_by_row = true,
                       .own_bias = true};

}  // namespace gimbal::vision
