// Pixtral, and Mistral 3, which joins squares of neighbours: heads that lines and columns rotate, a row
// behind each line. Agrawal et al., "Pixtral 12B", 2024; Mistral AI, "Mistral Small 3.1", 2025. LightOnOCR
// has the same encoder, but no rows behind lines. Taghadouini et al., "LightOnOCR", 2025.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

void record_pixtral(Recorder& m) {
  Value x = arch::rms_norm(m, "pre_ln", patches(m));
  const Blocks b = blocks(m, {.norm = Blocks::Norm::Rms,
                              .gated = true,
                              .angles = patch_angles(m, PatchAngles::Pixtral),
                              .pairs = RopePairs::Adjacent});
  for (int i = 0; i < m.config.layers && !m.failed(); i++) x = block(m, b, i, x);
  m.no_layer();
  const int n = patches_per_row(m);
  if (m.has("mm.patch_merger.weight"))
    x = product(m, "mm.patch_merger", joined(m, arch::rms_norm(m, "mm.input_norm", x), n));
  else x = joined(m, x, n);
  x = m.p.map(OpKind::Gelu, product(m, "mm.1", x));
  m.output(Output::Hidden, product(m, "mm.2", x));
}

}  // namespace

extern const VisionArch pixtral, lightonocr;
const VisionArch pixtral{.projector = "pixtral",
                         .record = record_pixtral,
                         .positions = PatchPositions::None,
                         .features_by_row = true};
const VisionArch lightonocr{.projector = "lightonocr",
                            .record = record_pixtral,
                            .positions = PatchPositions::None,
                            .features_by_row = true};

}  // namespace gimbal::vision
