// Importance matrices beside the double-precision run of whole models (crossval/reference_run.h), which is
// compared with an independent computation by numpy in crossval_reference_test; and the same bits from any
// number of threads and any batch.
#include "calibration/importance_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/format.h"
#include "crossval/reference_run.h"
#include "files/gguf.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

constexpr int kTokens = 32;

std::string text_of_tokens() {
  std::string all;
  for (int i = 0; i < 20; i++)
    all += format("Once upon a time {} little dogs ran to the big tree, and said: \"Hello, bird!\" ", i);
  return all;
}

struct Computed {
  ImportanceSums sums;
  ImportanceRun run;
  std::vector<Token> tokens;  // of the first window
};

Computed computed_by(const std::string& path, const std::string& device, int batch, int windows,
                     DType cache) {
  Computed c;
  EngineOptions options;
  options.device = device;
  options.run.batch = batch, options.run.cache_type = cache;
  options.run = importance_options(options.run, kTokens);
  auto engine = open_engine(path, options);
  EXPECT_TRUE(engine) << engine.error().message;
  if (!engine) return c;
  auto tokenizer = Tokenizer::create(engine->file->metadata());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  auto text = ScoredWindows::of(**tokenizer, text_of_tokens(), kTokens);
  EXPECT_TRUE(text && text->limit(0, windows));
  c.tokens = text->tokens(0);
  auto run = add_importance(*engine->model, *engine->file, *text, c.sums, {});
  EXPECT_TRUE(run) << run.error().message;
  if (run) c.run = *run;
  return c;
}

// The sums of all products' inputs, by the definitions of the ops.
std::map<std::string, InputSums> reference_sums(const std::string& path, std::span<const Token> tokens) {
  std::map<std::string, InputSums> all;
  auto engine = open_engine(path, {});
  EXPECT_TRUE(engine);
  crossval::ReferenceSettings settings;
  settings.watch = [&](const Program& p, const gimbal_op& op, std::span<const reference::Tensor* const> in) {
    const bool experts = OpKind(op.kind) == OpKind::ExpertMatMul;
    if (!experts && OpKind(op.kind) != OpKind::MatMul) return;
    const std::string& name = p.info[op.in[0]].name;  // with its part: "[128 to 191]"
    const StoredTensor* t = engine->file->tensors().find(name.substr(0, name.find('[')));
    if (!t || name.find(" to ") != name.npos) return;  // the first part counts
    const auto columns = size_t(t->dim[0]), matrices = size_t(t->dim[2]);
    InputSums& sums = all[std::string(t->name)];
    sums.squares.resize(columns * matrices), sums.rows.resize(matrices);
    const auto add = [&](size_t matrix, const double* x) {
      for (size_t i = 0; i < columns; i++) sums.squares[matrix * columns + i] += x[i] * x[i];
      sums.rows[matrix]++;
    };
    const std::vector<double>& x = in[1]->values;
    const size_t first =
        name.find("[expert ") == name.npos ? 0 : size_t(std::stoi(name.substr(name.find(' ') + 1)));
    if (!experts) {
      for (size_t at = 0; at < x.size(); at += columns) add(first, &x[at]);
      return;
    }
    const size_t slots_of_x = size_t(in[1]->shape.dim[1]);
    const size_t slots = in.size() > 2 ? size_t(in[2]->shape.dim[0]) / 2 : matrices;
    for (size_t r = 0; r < x.size() / columns / slots_of_x; r++)
      for (size_t s = 0; s < slots; s++) {
        const size_t matrix = in.size() > 2 ? size_t(in[2]->values[(2 * r + 1) * slots + s]) : s;
        add(matrix, &x[(r * slots_of_x + s % slots_of_x) * columns]);
      }
  };
  const auto run = crossval::run_reference(*engine->file, *engine->device, tokens, settings);
  EXPECT_TRUE(run) << run.error().message;
  return all;
}

// The size of the difference of all means, relative to theirs.
double distance(const InputSums& a, const InputSums& b) {
  const std::vector<float> x = a.means(), y = b.means();
  double size = 0, difference = 0;
  for (size_t i = 0; i < x.size(); i++) {
    size += double(y[i]) * double(y[i]);
    difference += (double(x[i]) - double(y[i])) * (double(x[i]) - double(y[i]));
  }
  return std::sqrt(difference / size);
}

void expect_like_reference(const std::string& path, double allowed) {
  SCOPED_TRACE(path);
  const Computed ours = computed_by(path, "threads=2", 64, 1, DType::F32);
  ASSERT_EQ(ours.run.windows, 1);
  const auto expected = reference_sums(path, ours.tokens);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(ours.sums.tensors().size(), expected.size());
  for (const auto& [name, sums] : expected) {
    const auto found = ours.sums.tensors().find(name);
    ASSERT_NE(found, ours.sums.tensors().end()) << name;
    EXPECT_EQ(found->second.rows, sums.rows) << name << ": the number of rows of each matrix";
    EXPECT_LT(distance(found->second, sums), allowed) << name;
  }
}

TEST(ImportanceRuns, AreWithinRoundingOfTheDoublePrecisionRun) {
  // Dense, with tied output, with fused q, k and v, with a matrix that is read in parts, with other norms.
  expect_like_reference(golden_dir() + "/stories/stories260K-f32.gguf", 1e-5);
  for (const char* arch : {"arch/llama-gqa", "arch/llama-mha-tied", "arch/gemma3", "arch/starcoder2",
                           "more/arch/bloom", "more/arch/mamba2"})
    expect_like_reference(golden_dir() + "/" + arch + ".gguf", 1e-5);
  if (whole_collection()) expect_like_reference(golden_dir() + "/arch/phi3.gguf", 1e-5);
}

// The files of llama.cpp's program for this text, by the commands in docs/quantize.md.
TEST(ImportanceRuns, AreThoseOfLlamaImatrix) {
  for (const char* model :
       {"stories/stories260K-f32", "more/arch/glm4moe", "more/arch/deepseek2", "more/arch/llama4"}) {
    SCOPED_TRACE(model);
    const std::string name = std::string(model).substr(std::string(model).rfind('/') + 1);
    const auto peer = ImportanceSums::open(GIMBAL_SOURCE_DIR "/tests/data/peer/imatrix/" + name + ".gguf");
    ASSERT_TRUE(peer) << peer.error().message;
    EXPECT_EQ(peer->windows, 4u);
    EXPECT_EQ(peer->window, uint32_t(kTokens));
    EXPECT_GT(peer->tensors().size(), 25u);
    const Computed ours = computed_by(golden_dir() + "/" + model + ".gguf", "threads=2", 64, 4, DType::F32);
    for (const auto& [tensor, sums] : peer->tensors()) {
      SCOPED_TRACE(tensor);
      const auto found = ours.sums.tensors().find(tensor);
      ASSERT_NE(found, ours.sums.tensors().end());
      const InputSums& own = found->second;
      // It counts the matrices of attention heads as one.
      const size_t heads = own.rows.size() / sums.rows.size();
      for (size_t i = 0; i < own.rows.size(); i++) EXPECT_EQ(own.rows[i], sums.rows[i / heads]);
      ASSERT_EQ(own.squares.size(), sums.squares.size());
      double size = 0, difference = 0;
      for (size_t i = 0; i < sums.squares.size(); i++) {
        size += sums.squares[i] * sums.squares[i];
        difference += (own.squares[i] - sums.squares[i]) * (own.squares[i] - sums.squares[i]);
      }
      EXPECT_LT(std::sqrt(difference / size), 1e-5);
    }
  }
}

TEST(ImportanceRuns, CountEachExpertAndHeadAlone) {
  std::vector<std::string> models = {"more/arch/glm4moe", "more/arch/lfm2moe", "more/arch/llama4",
                                     "more/arch/deepseek2"};
  if (whole_collection())
    for (const char* more : {"arch/mixtral", "arch/qwen3moe", "arch/qwen2moe"}) models.emplace_back(more);
  for (const std::string& model : models) expect_like_reference(golden_dir() + "/" + model + ".gguf", 1e-5);
  const Computed ours = computed_by(golden_dir() + "/more/arch/glm4moe.gguf", "threads=1", 64, 1, DType::F32);
  size_t stacked = 0;
  for (const auto& [name, sums] : ours.sums.tensors()) {
    if (name.find("_exps") == name.npos) continue;
    double rows = 0;
    for (double n : sums.rows) rows += n;
    EXPECT_GT(sums.rows.size(), 1u);
    EXPECT_TRUE(rows > 0 && std::fmod(rows, kTokens) == 0) << "the same number of experts for each token";
    stacked++;
  }
  EXPECT_GT(stacked, 0u);
}

// Products take quantized inputs then; the sums are of those before.
TEST(ImportanceRuns, OfQuantizedModelsAreOfInputsBeforeQuantization) {
  const std::string f32 = golden_dir() + "/stories/stories260K-f32.gguf";
  expect_like_reference(golden_dir() + "/stories/stories260K-q8_0.gguf", 0.02);
  expect_like_reference(golden_dir() + "/arch/gpt-oss.gguf", 0.05);
  const Computed plain = computed_by(f32, "threads=1", 64, 1, DType::F32),
                 quantized = computed_by(golden_dir() + "/stories/stories260K-q8_0.gguf", "threads=1", 64, 1,
                                         DType::F32);
  for (const auto& [name, sums] : plain.sums.tensors()) {
    const InputSums& other = quantized.sums.tensors().at(name);
    EXPECT_LT(distance(other, sums), 0.03) << name;
    EXPECT_NE(other.squares, sums.squares) << name;
  }
}

// Threads: results must not depend on them.
TEST(ImportanceRuns, TheSameBitsFromAnyNumberOfThreadsAndAnyBatch) {
  for (const char* path :
       {"/stories/stories260K-q8_0.gguf", "/more/arch/glm4moe.gguf", "/arch/gpt-oss.gguf"}) {
    const Computed one = computed_by(golden_dir() + path, "threads=1", 64, 3, DType::F16);
    EXPECT_EQ(one.sums.windows, 3u);
    EXPECT_EQ(one.sums.window, uint32_t(kTokens));
    EXPECT_EQ(one.run.loss.count(), 3 * (kTokens / 2 - 1));
    for (const auto& [device, batch] : {std::pair("threads=2", 64), {"threads=3", 7}, {"threads=1", 1}}) {
      const Computed other = computed_by(golden_dir() + path, device, batch, 3, DType::F16);
      EXPECT_EQ(other.run.loss.value(), one.run.loss.value());
      for (const auto& [name, sums] : one.sums.tensors()) {
        EXPECT_EQ(other.sums.tensors().at(name).squares, sums.squares)
            << path << " " << name << " " << device;
        EXPECT_EQ(other.sums.tensors().at(name).rows, sums.rows);
      }
    }
  }
}

TEST(ImportanceRuns, RefuseToSkipAllWindows) {
  const ModelSource file = *open_gguf(golden_dir() + "/stories/stories260K-f32.gguf");
  auto text = ScoredWindows::of(**Tokenizer::create(file.metadata()), text_of_tokens(), kTokens);
  ASSERT_TRUE(text);
  const int all = text->windows();
  const Status refused = text->limit(all, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Usage);
  EXPECT_TRUE(text->limit(all - 1, 1));
  EXPECT_EQ(text->windows(), 1);
}

// What `gimbal imatrix --from-chunk` needs after a second interruption.
TEST(ImportanceRuns, NameTheWindowToContinueFrom) {
  EngineOptions options;
  options.run = importance_options(options.run, kTokens);
  auto engine = open_engine(golden_dir() + "/stories/stories260K-f32.gguf", options);
  ASSERT_TRUE(engine) << engine.error().message;
  auto text = ScoredWindows::of(**Tokenizer::create(engine->file->metadata()), text_of_tokens(), kTokens);
  ASSERT_TRUE(text && text->limit(1, 4));
  ImportanceSums sums;
  const auto run =
      add_importance(*engine->model, *engine->file, *text, sums, [](int windows) { return windows < 2; });
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->windows, 2);
  EXPECT_EQ(run->next, 3) << "one was left out, two are done";
}

TEST(ImportanceRuns, RefuseAModelThatKeepsNoInputs) {
  EngineOptions options;
  options.run.context = kTokens;
  auto engine = open_engine(golden_dir() + "/stories/stories260K-f32.gguf", options);
  ASSERT_TRUE(engine);
  auto tokenizer = Tokenizer::create(engine->file->metadata());
  auto text = ScoredWindows::of(**tokenizer, text_of_tokens(), kTokens);
  ASSERT_TRUE(text);
  ImportanceSums sums;
  const auto run = add_importance(*engine->model, *engine->file, *text, sums, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::Usage);
  // Of another model.
  options.run = importance_options(options.run, kTokens);
  auto keeping = open_engine(golden_dir() + "/stories/stories260K-f32.gguf", options);
  ASSERT_TRUE(keeping);
  sums.add("blk.0.attn_q.weight", {{1, 2, 3}, {1}});
  EXPECT_FALSE(add_importance(*keeping->model, *keeping->file, *text, sums, {}));
}

}  // namespace
}  // namespace gimbal::test
