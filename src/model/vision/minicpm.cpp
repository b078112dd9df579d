// MiniCPM-V: SigLIP, and a resampler: learned queries that attend to all patches become the rows. Queries are
// rows in front of the patches. Yao et al., "MiniCPM-V: A GPT-4V Level MLLM on Your Phone", 2024. Its
// version 4.6 joins patches instead: after some blocks, 2 x 2 of them, which first attend to each other; and
// 2 x 2 of these behind the last one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/fixed_math.h"
#include "base/format.h"
#include "model/vision/vision_blocks.h"

namespace gimbal::vision {
namespace {

constexpr int kHeadDim = 128;  // of the resampler's attention
constexpr int kSquare = 4;     // patches of a square

Value norm_of(Recorder& m, const std::string& name, Value x) {
  return arch::layer_norm(m, name, x, arch::Bias::Needed);
}

// Of a patch: sines and cosines of its column at d / 4 frequencies, then of its line.
Value waves(Recorder& m, int width) {
  const int n = width / 4;
  std::vector<double> frequencies;
  for (int i = 0; i < n; i++) frequencies.push_back(fixed::pow(10000.0, -double(i) / n));
  return m.patch_input("waves", DType::F32, width, [n, frequencies](const PatchRow& r, std::byte* to) {
    for (int i = 0; i < n; i++) {
      const double x = r.column * frequencies[size_t(i)], y = r.line * frequencies[size_t(i)];
      const float values[] = {float(fixed::sin(x)), float(fixed::cos(x)), float(fixed::sin(y)),
                              float(fixed::cos(y))};
      for (int part = 0; part < 4; part++) std::memcpy(to + 4 * (part * n + i), &values[part], sizeof(float));
    }
  });
}

// The number of the query that a row is; of a patch 0, whose result is not used.
Value queries(Recorder& m) {
  return m.patch_input("query", DType::I32, 0, [](const PatchRow& r, std::byte* to) {
    const int32_t query = std::max(0, r.query);
    std::memcpy(to, &query, sizeof query);
  });
}

void record_resampler(Recorder& m) {
  ProgramBuilder& p = m.p;
  m.leave_out("resampler.pos_embed_k");
  const int count = m.hyper.count("queries"), width = std::max(1, m.rows("resampler.kv.weight"));
  if (width % kHeadDim)
    return m.hyper.fail(Code::Malformed,
                        format("the resampler's width {} is no multiple of {}", width, kHeadDim));
  const Value seen = seen_in_window(m);
  Value x = patches(m);
  Blocks b = blocks(m);
  b.all = seen;  // the queries are not seen
  x = product(m, "resampler.kv", arch::layer_norm(m, "post_ln", all_blocks(m, b, x)));
  const Value values = norm_of(m, "resampler.ln_kv", x), keys = p.add(values, waves(m, width));
  const Value asked =
      norm_of(m, "resampler.ln_q", p.embed(m.matrix("resampler.query", width, count), queries(m)));
  const int heads = width / kHeadDim;
  const auto of = [&](const char* name, Value y) {
    return p.split_heads(
        arch::project(m, std::string("resampler.attn.") + name, width, y, arch::Bias::Needed), kHeadDim);
  };
  b.keys = m.keys("resampler keys", b.pool, kHeadDim, heads);
  b.values = m.values("resampler values", b.pool, kHeadDim, heads);
  const arch::Attention a{.heads = heads,
                          .kv_heads = heads,
                          .head_dim = kHeadDim,
                          .value_dim = kHeadDim,
                          .scale = float(1 / std::sqrt(double(kHeadDim))),
                          .seen = seen};
  x = p.select_rows(attended(m, b, a, {of("q", asked), of("k", keys), of("v", values)}), m.wanted_rows());
  x = norm_of(m, "resampler.ln_post", arch::project(m, "resampler.attn.out", width, x, arch::Bias::Needed));
  m.output(Output::Hidden, product(m, "resampler.proj", x));
}

// The four patches of each row's square, in all of its rows. [d, R] each
std::vector<Value> squares(Recorder& m, Value x) {
  std::vector<Value> all;
  for (int i = 0; i < kSquare; i++) {
    const Value rows =
        m.patch_input("patch " + std::to_string(i), DType::I32, 0, [i](const PatchRow& r, std::byte* to) {
          const int32_t row = r.first + i;
          std::memcpy(to, &row, sizeof row);
        });
    all.push_back(m.p.select_rows(x, rows));
  }
  return all;
}

// Each row of a square gets the merged row. All four stay: attention over keys and values that occur four
// times gives the same result.
Value merged_squares(Recorder& m, const Blocks& b, Value x) {
  ProgramBuilder& p = m.p;
  arch::Attention a = arch::attention(m);
  a.seen = b.window;
  const Value z = norm_of(m, "vit_merger.ln1", x);
  const auto heads = [&](const char* name) {
    return p.split_heads(product(m, std::string("vit_merger.") + name, z), a.head_dim);
  };
  const Value y = attended(m, b, a, {heads("attn_q"), heads("attn_k"), heads("attn_v")});
  const std::vector<Value> four = squares(m, p.add(x, product(m, "vit_merger.attn_out", y)));
  const Value both = norm_of(m, "vit_merger.ds_ln", joined_of(m, four));
  return p.add(two_products(m, "vit_merger.ds_ffn_up", "vit_merger.ds_ffn_down", both, OpKind::Gelu),
               mean_of(m, four));
}

void record_minicpm46(Recorder& m) {
  const int step = patches_per_row(m) / kSquare;  // as many patches become one before the last products
  Value x = patches(m);
  Blocks b = blocks(m);
  if (step == kSquare) b.window = seen_in_window(m);
  for (int i = 0; i < m.config.layers && !m.failed(); i++) {
    x = block(m, b, i, x);
    if (step == kSquare && i == m.hyper.count("merger_layer", 0, 0)) x = merged_squares(m, b, x);
  }
  m.no_layer();
  x = arch::layer_norm(m, "post_ln", x);
  std::vector<Value> four;
  for (int i = 0; i < kSquare; i++) four.push_back(m.p.select_rows(x, m.wanted_rows(i * step)));
  x = arch::layer_norm(m, "mm.input_norm", joined_of(m, four));
  m.output(Output::Hidden, two_products(m, "mm.up", "mm.down", x, OpKind::GeluErf));
}

}  // namespace

extern const VisionArch minicpmv, minicpmv46;
const VisionArch minicpmv{.projector = "resampler",
                          .record = record_resampler,
                          .positions = PatchPositions::Nearest,
                          .legacy_names = true};
const VisionArch minicpmv46{.projector = "minicpmv4_6",
                            .record = record_minicpm46,
                            .positions = PatchPositions::Nearest,
                            .legacy_names = true,
                            .squares = true};

}  // namespace gimbal::vision
