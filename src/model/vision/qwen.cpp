// Qwen2-VL, Qwen2.5-VL (windows) and Qwen3-VL (parts of a row for the first layers of the text model): heads
// that lines and columns rotate; four neighbours become a row. Wang et al., "Qwen2-VL", 2024; Bai et al.,
// "Qwen2.5-VL Technical Report", 2025; "Qwen3-VL Technical Report", 2025.
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

constexpr int kJoined = 4;

Value rows_of_four(Recorder& m, Value x) {
  x = m.p.map(OpKind::Gelu, product(m, "mm.0", joined(m, x, kJoined)));
  return product(m, "mm.2", x);
}

void record_qwen2vl(Recorder& m) {
  Value x = patches(m);
  const Blocks b = blocks(m, {.angles = patch_angles(m, PatchAngles::Qwen)});
  for (int i = 0; i < m.config.layers && !m.failed(); i++) x = block(m, b, i, x);
  m.no_layer();
  m.output(Output::Hidden, rows_of_four(m, arch::layer_norm(m, "post_ln", x)));
}

// Each n_wa_pattern-th block sees all; 0: each does.
void record_qwen25vl(Recorder& m) {
  const int pattern = m.hyper.count("n_wa_pattern", 0, 0);
  Value x = patches(m);
  Blocks b =
      blocks(m, {.norm = Blocks::Norm::Rms, .gated = true, .angles = patch_angles(m, PatchAngles::Qwen)});
  b.window = seen_in_window(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++)
    x = block(m, b, i, x, pattern > 0 && (i + 1) % pattern != 0);
  m.no_layer();
  m.output(Output::Hidden, rows_of_four(m, arch::rms_norm(m, "post_ln", x)));
}

// The summands of the text model's first layers, from the outputs of some blocks.
Value layer_part(Recorder& m, Value x) {
  x = arch::layer_norm(m, "deepstack.norm", joined(m, x, kJoined));
  return product(m, "deepstack.fc2", m.p.map(OpKind::Gelu, product(m, "deepstack.fc1", x)));
}

void record_qwen3vl(Recorder& m) {
  Value x = patches(m);
  const Blocks b = blocks(m, {.angles = patch_angles(m, PatchAngles::Qwen)});
  std::vector<Value> parts;
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    x = block(m, b, i, x);
    if (m.has("deepstack.norm.weight")) parts.push_back(layer_part(m, x));
  }
  m.no_layer();
  Value rows = rows_of_four(m, arch::layer_norm(m, "post_ln", x));
  for (Value part : parts) rows = joined_values(m, rows, part);
  m.output(Output::Hidden, rows);
}

}  // namespace

extern const VisionArch qwen2vl, qwen25vl, qwen3vl;
const VisionArch qwen2vl{.projector = "qwen2vl_merger",
                         .record = record_qwen2vl,
                         .positions = PatchPositions::None,
                         .legacy_names = true,
                         .grid = true};
const VisionArch qwen25vl{.projector = "qwen2.5vl_merger",
                          .record = record_qwen25vl,
                          .positions = PatchPositions::None,
                          .legacy_names = true,
                          .windows = true,
                          .grid = true};
const VisionArch qwen3vl{.projector = "qwen3vl_merger",
                         .record = record_qwen3vl,
                         .positions = PatchPositions::Corners,
                         .grid = true};

}  // namespace gimbal::vision
