// SigLIP and its kin. LFM2-VL: SigLIP 2 on pictures of their own shape, whose squares of neighbours become
// one row. Liquid AI, "LFM2 Technical Report", 2025; Tschannen et al., "SigLIP 2", 2025. Janus-Pro: each
// patch is a row. Chen et al., "Janus-Pro: Unified Multimodal Understanding and Generation with Data and
// Model Scaling", 2025. Kimi-VL: columns and lines rotate heads, too. Kimi Team, "Kimi-VL Technical Report",
// 2025. PaddleOCR-VL: likewise, lines first. Cui et al., "PaddleOCR-VL", 2025.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

constexpr float kEpsilon = 1e-5f;  // of the norm before the products, whatever the file's is

Value input_norm(Recorder& m, Value x) {
  const int width = arch::width_of(m, x);
  return m.p.norm(x, NormKind::Layer, kEpsilon, m.vector("mm.input_norm.weight", width),
                  m.optional_vector("mm.input_norm.bias", width));
}

// The norm is of joined patches, and may be missing.
void record_lfm2(Recorder& m) {
  const Value x = arch::layer_norm(m, "post_ln", all_blocks(m, blocks(m), patches(m)));
  Value rows = joined(m, x, patches_per_row(m));
  if (m.has("mm.input_norm.weight")) rows = input_norm(m, rows);
  m.output(Output::Hidden, two_products(m, "mm.1", "mm.2", rows, OpKind::Gelu));
}

void record_janus(Recorder& m) {
  const Value x = arch::layer_norm(m, "post_ln", all_blocks(m, blocks(m), patches(m)));
  m.output(Output::Hidden, two_products(m, "mm.0", "mm.1", m.p.select_rows(x, m.wanted_rows())));
}

void record_rotated(Recorder& m, Blocks kind) {
  const Value x = patches(m);
  const Value y = arch::layer_norm(m, "post_ln", all_blocks(m, blocks(m, kind), x));
  const Value rows = joined(m, input_norm(m, y), patches_per_row(m));
  m.output(Output::Hidden, two_products(m, "mm.1", "mm.2", rows, OpKind::Gelu));
}

void record_kimi(Recorder& m) {
  record_rotated(m, {.angles = patch_angles(m, PatchAngles::ColumnFirst), .pairs = RopePairs::Adjacent});
}
void record_paddle(Recorder& m) { record_rotated(m, {.angles = patch_angles(m, PatchAngles::Qwen)}); }

}  // namespace

extern const VisionArch lfm2, janus, kimivl, paddleocr;
const VisionArch lfm2{.projector = "lfm2", .record = record_lfm2, .positions = PatchPositions::Smoothed};
const VisionArch janus{.projector = "janus_pro", .record = record_janus};
const VisionArch kimivl{.projector = "kimivl", .record = record_kimi, .positions = PatchPositions::Cubic};
const VisionArch paddleocr{
    .projector = "paddleocr", .record = record_paddle, .positions = PatchPositions::Linear, .grid = true};

}  // namespace gimbal::vision
