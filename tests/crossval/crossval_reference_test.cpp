// The double-precision run of whole models: beside one by numpy (logits_ref64 of tests/data), and beside our
// CPU.
#include "crossval/reference_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "crossval/compare.h"
#include "crossval/our_layers.h"
#include "program/builder.h"
#include "support/engine.h"
#include "support/fake_backend.h"
#include "support/golden.h"

namespace gimbal::crossval {
namespace {

struct ReferenceCase {
  std::vector<int32_t> tokens;
  std::vector<size_t>
      positions;  // with logits of ref64, an independent computation in double precision by numpy
  std::vector<float> ref64;
  test::Engine engine;
};

// The longest text of at most 48 tokens.
ReferenceCase opened(const std::string& path) {
  ReferenceCase c;
  const auto json = test::read_json(path.substr(0, path.size() - 5) + ".json");
  for (const auto& one : json["cases"]) {
    if (one["tokens"].size() > 48 || one["tokens"].size() <= c.tokens.size()) continue;
    c.tokens = one["tokens"].get<std::vector<int32_t>>();
    c.positions = one["positions"].get<std::vector<size_t>>();
    c.ref64 = test::base64_floats(one["logits_ref64"]);
  }
  test::EngineOptions options;
  options.run.context = options.run.batch = options.run.logit_rows = int(c.tokens.size());
  options.run.cache_type = DType::F32;
  auto engine = test::open_engine(path, options);
  EXPECT_TRUE(bool(engine)) << path << ": " << engine.error().message;
  if (engine) c.engine = std::move(*engine);
  return c;
}

// A layer may leave several values of the right width to the next one.
TEST(LayerValues, OfSeveralTheLastOneIsPassedOn) {
  const auto device = test::open_fake({});
  ProgramBuilder p(*device, 4, 1);
  const Value x = p.rows_input("x", DType::F32, 8);
  const auto add = [&](Value a, Value b, const char* name) {
    return p.record(OpKind::Add, {a, b}, {}, name);
  };
  p.layer(0);
  const Value first = add(x, x, "first"), second = add(first, x, "second");
  p.layer(1);
  const Value third = add(second, first, "third");
  p.layer(kAfterLayers);
  p.output(add(third, second, "fourth"));
  const auto program = std::move(p).finish();
  ASSERT_TRUE(program) << program.error().message;
  const std::vector<LayerValue> all = layer_values(*program, 8);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].layer, 0);
  EXPECT_EQ(all[0].name, "second");
  EXPECT_EQ(all[0].last_op, 1u);
  EXPECT_EQ(all[1].name, "third");
  EXPECT_TRUE(layer_values(*program, 16).empty()) << "none has this width";
}

// Our CPU is within rounding of the reference, and its layers are those of the undivided model.
void expect_within_rounding(const std::string& path) {
  SCOPED_TRACE(path);
  ReferenceCase c = opened(path);
  if (!c.engine.model) return;
  auto run = run_reference(*c.engine.file, *c.engine.device, c.tokens, {.moved = kMovedRuns});
  ASSERT_TRUE(bool(run)) << run.error().message;
  ASSERT_EQ(run->moved.size(), size_t(kMovedRuns));
  ASSERT_EQ(run->exact.logits.rows(), int(c.tokens.size()));
  const size_t width = size_t(run->exact.logits.width);
  // ref64's answers are kept as float32.
  size_t compared = 0;
  for (size_t i = 0; i < c.positions.size() && c.positions[i] < c.tokens.size(); i++)
    for (size_t k = 0; k < width; k++, compared++)
      EXPECT_NEAR(run->exact.logits.row(int(c.positions[i]))[k], double(c.ref64[i * width + k]), 2e-5)
          << "token " << c.positions[i] << ", logit " << k;
  EXPECT_GT(compared, 0u);
  const auto rounding = [&](const Rows& exact, auto pick) {
    std::vector<Rows> moved;
    for (const ModelValues& m : run->moved) moved.push_back(pick(m));
    return Rounding(exact, moved);
  };
  const std::vector<float> logits = c.engine.all_logits(c.tokens);
  const Rounding of_logits = rounding(run->exact.logits, [](const ModelValues& m) { return m.logits; });
  for (int r = 0; r < of_logits.rows(); r++)
    EXPECT_LT(of_logits.share(r, std::span(logits).subspan(size_t(r) * width, width)), 1) << "token " << r;

  RunOptions options;
  options.cache_type = DType::F32;
  size_t seen = 0;
  auto ok = our_layers(*c.engine.file, *c.engine.device, options, c.tokens,
                       [&](int layer, int wide, std::span<const float> rows) {
                         ASSERT_LT(seen, run->exact.layers.size());
                         EXPECT_EQ(run->exact.layers[seen], layer);
                         const Rounding r = rounding(run->exact.layer[seen],
                                                     [&](const ModelValues& m) { return m.layer[seen]; });
                         for (int i = 0; i < r.rows(); i++)
                           EXPECT_LT(r.share(i, rows.subspan(size_t(i) * size_t(wide), size_t(wide))), 1)
                               << "layer " << layer << ", token " << i;
                         seen++;
                       });
  ASSERT_TRUE(bool(ok)) << ok.error().message;
  EXPECT_EQ(seen, run->exact.layers.size());
  EXPECT_EQ(seen, size_t(c.engine.model->config().layers));
}

TEST(CrossvalReference, OurCpuIsWithinRoundingOfIt) {
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"})
    expect_within_rounding(test::golden_dir() + "/stories/stories260K-" + type + ".gguf");
  for (const char* arch : {"llama-gqa", "qwen2", "gemma3", "gpt-oss", "starcoder2", "bitnet-b158-i2s"})
    expect_within_rounding(test::golden_dir() + "/arch/" + arch + ".gguf");
}

// A defect as small as one wrong weight of a norm is no rounding.
TEST(CrossvalReference, ASmallDefectIsNoRounding) {
  ReferenceCase c = opened(test::golden_dir() + "/stories/stories260K-q8_0.gguf");
  auto run = run_reference(*c.engine.file, *c.engine.device, c.tokens, {.moved = kMovedRuns});
  ASSERT_TRUE(bool(run));
  std::vector<Rows> moved;
  for (const ModelValues& m : run->moved) moved.push_back(m.logits);
  const Rounding rounding(run->exact.logits, moved);
  std::vector<float> row(run->exact.logits.row(3).begin(), run->exact.logits.row(3).end());
  EXPECT_LT(rounding.share(3, row), 0.1);
  row[9] += float(8 * rounding.allowed(3)) + 0.2f;
  EXPECT_GT(rounding.share(3, row), 1);
}

TEST(CrossvalReference, TellsItsCost) {
  ReferenceCase c = opened(test::golden_dir() + "/stories/stories260K-f32.gguf");
  auto cost = reference_cost(*c.engine.file, *c.engine.device);
  ASSERT_TRUE(bool(cost));
  EXPECT_GT(cost->operations, 4e5);  // two for each of its 260 thousand weights
  EXPECT_LT(cost->operations, 1e6);
}

}  // namespace
}  // namespace gimbal::crossval
