// LLaVA: CLIP or SigLIP, and a small network over each row. Liu et al., "Visual Instruction Tuning", 2023;
// "Improved Baselines with Visual Instruction Tuning", 2024.
#include <algorithm>

#include "base/format.h"
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

// The outputs of blocks beside each other; of the last one, where the file names none.
Value features(Recorder& m) {
  Value x = patches(m);
  if (m.has("pre_ln.weight")) x = arch::layer_norm(m, "pre_ln", x);
  std::vector<int64_t> named;
  if (const MetadataArray* list = m.metadata().array(m.config.arch + std::string(".feature_layer")))
    named = list->integers();
  std::optional<Value> all;
  const auto add = [&](int i) {
    if (std::find(named.begin(), named.end(), i) == named.end()) return;
    all = all ? joined_values(m, *all, x) : x;
  };
  const Blocks b = blocks(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) add(i), x = block(m, b, i, x);
  m.no_layer();
  if (m.has("post_ln.weight")) x = arch::layer_norm(m, "post_ln", x);
  add(m.config.layers);
  return named.empty() || !all ? x : *all;
}

void record_llava(Recorder& m) {
  ProgramBuilder& p = m.p;
  Value x = product(m, "mm.0", p.select_rows(features(m), m.wanted_rows()));
  if (m.has("mm.3.weight")) {
    x = p.map(OpKind::Gelu, arch::layer_norm(m, "mm.1", x));
    x = arch::layer_norm(m, "mm.4", product(m, "mm.3", x));
  } else if (m.has("mm.2.weight")) {
    x = product(m, "mm.2", p.map(OpKind::Gelu, x));
  }
  m.output(Output::Hidden, x);
}

}  // namespace

extern const VisionArch mlp;
const VisionArch mlp{.projector = "mlp", .record = record_llava, .legacy_names = true};

}  // namespace gimbal::vision
