// Llama 4: heads that columns and lines rotate, a class row behind the patches; squares of neighbours become
// one row. Meta, "The Llama 4 herd", 2025.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

void record_llama4(Recorder& m) {
  ProgramBuilder& p = m.p;
  Value x = arch::layer_norm(m, "pre_ln", patches(m));
  const Blocks b =
      blocks(m, {.angles = patch_angles(m, PatchAngles::ColumnFirst), .pairs = RopePairs::Adjacent});
  x = joined(m, arch::layer_norm(m, "post_ln", all_blocks(m, b, x)), patches_per_row(m));
  x = p.map(OpKind::Gelu, two_products(m, "mm.model.mlp.1", "mm.model.mlp.2", x, OpKind::Gelu));
  m.output(Output::Hidden, product(m, "mm.model.fc", x));
}

}  // namespace

extern const VisionArch llama4;
const VisionArch llama4{.projector = "llama4", .record = record_llama4, .class_last = true};

}  // namespace gimbal::vision
