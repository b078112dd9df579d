// Whisper's encoder of speech, of whose rows some that follow each other become one. Radford et al., "Robust
// Speech Recognition via Large-Scale Weak Supervision", 2022; Fixie AI, "Ultravox", 2024; Liu et al.,
// "Voxtral", 2025; Chu et al., "Qwen2-Audio Technical Report", 2024.
#include <cstring>

#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

// Two convolutions along time, the second with a step of two: each row computes the three results of the
// first that it needs. Before the beginning there are zeros, not results.
Value frames(Recorder& m) {
  ProgramBuilder& p = m.p;
  const int width = m.config.width, taps = 3 * m.hyper.count("num_mel_bins");
  const Value kernel = m.matrix("conv1.weight", taps, width), bias = m.vector("conv1.bias", width);
  const auto first = [&](int group) {
    const Value x = m.patch_input("frames " + std::to_string(group), DType::F32, taps,
                                  [taps, group](const PatchRow& r, std::byte* to) {
                                    std::memcpy(to, r.pixels + group * taps, size_t(taps) * sizeof(float));
                                  });
    return p.map(OpKind::GeluErf, p.linear(kernel, x, bias));
  };
  const Value has_before =
      m.patch_input("has frames before", DType::F32, 1, [](const PatchRow& r, std::byte* to) {
        const float factor = r.line > 0;
        std::memcpy(to, &factor, sizeof factor);
      });
  Value x = joined_values(m, p.mul(first(0), has_before), first(1));
  x = joined_values(m, x, first(2));
  x = p.map(OpKind::GeluErf,
            p.linear(m.matrix("conv2.weight", 3 * width, width), x, m.vector("conv2.bias", width)));
  return p.add(x, positions(m));
}

Value encoded(Recorder& m) {
  const Value x = frames(m);
  Blocks b = blocks(m, {.exact = true});
  b.all = seen_in_window(m);  // the rows that fill up the last one are not seen
  return all_blocks(m, b, x);
}

// The normed rows of a result beside each other; those that fill up the last one are zeros.
Value stacked(Recorder& m) {
  const Value x = encoded(m);
  const Value is_frame = m.patch_input("is a frame", DType::F32, 1, [](const PatchRow& r, std::byte* to) {
    const float factor = r.column != 0;
    std::memcpy(to, &factor, sizeof factor);
  });
  return joined(m, m.p.mul(arch::layer_norm(m, "post_ln", x), is_frame), patches_per_row(m));
}

void record_ultravox(Recorder& m) {
  constexpr float kEpsilon = 1e-6f;  // of the norms around the products, whatever the file's is
  ProgramBuilder& p = m.p;
  Value x = stacked(m);
  x = product(m, "mm.a.mlp.1",
              p.rms_norm(x, m.vector("mm.a.norm_pre.weight", arch::width_of(m, x)), kEpsilon));
  const int half = std::max(1, arch::width_of(m, x) / 2);
  x = p.swiglu(p.slice(x, half, half), p.slice(x, 0, half));
  x = p.rms_norm(x, m.vector("mm.a.norm_mid.weight", half), kEpsilon);
  m.output(Output::Hidden, product(m, "mm.a.mlp.2", x));
}

void record_voxtral(Recorder& m) {
  m.output(Output::Hidden, two_products(m, "mm.a.mlp.1", "mm.a.mlp.2", stacked(m), OpKind::GeluErf));
}

void record_qwen2a(Recorder& m) {
  const Value x = mean(m, encoded(m), patches_per_row(m));
  m.output(Output::Hidden, product(m, "mm.a.fc", arch::layer_norm(m, "post_ln", x)));
}

}  // namespace

extern const VisionArch ultravox, voxtral, qwen2a;
const VisionArch ultravox{.projector = "ultravox", .record = record_ultravox, .sound = true};
const VisionArch voxtral{.projector = "voxtral", .record = record_voxtral, .sound = true};
const VisionArch qwen2a{.projector = "qwen2a", .record = record_qwen2a, .sound = true};

}  // namespace gimbal::vision
