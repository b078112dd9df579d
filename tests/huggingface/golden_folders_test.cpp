// Folders as transformers writes them: ids and texts by `tokenizers`, prompts by transformers' templates,
// logits by a double-precision computation that agrees with transformers. The same model as a GGUF file,
// written by gguf-py, must give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "chat/chat_template.h"
#include "huggingface/folder.h"
#include "support/engine.h"
#include "support/golden.h"
#include "support/placed.h"
#include "tokenizer/tokenizer.h"

namespace gimbal::test {
namespace {

struct FolderCase {
  std::string name, folder, twin;
  nlohmann::ordered_json golden;
};

std::vector<FolderCase> folder_cases() {
  std::vector<FolderCase> all;
  for (const std::string& path : golden_files("hf", ".json")) {
    FolderCase c;
    c.golden = read_json(path);
    c.name = c.golden["directory"];
    c.folder = golden_dir() + "/hf/" + c.name;
    c.twin = golden_dir() + "/hf/" + std::string(c.golden["gguf"]);
    // A clone has folders without their twins.
    if (!whole_collection()) c.twin = "";
    all.push_back(std::move(c));
  }
  return all;
}

ModelSource opened(const std::string& path) {
  auto source = open_source(path);
  if (source) return std::move(*source);
  ADD_FAILURE() << source.error().message;
  std::abort();
}

TEST(GoldenFolders, IdsAndTextsAreThoseOfTokenizers) {
  size_t strings = 0;
  for (const FolderCase& c : folder_cases()) {
    SCOPED_TRACE(c.name);
    const ModelSource source = opened(c.folder);
    const auto tokenizer = Tokenizer::create(source.metadata());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    for (const auto& s : c.golden["strings"]) {
      const std::string text = s["text"];
      const std::vector<Token> ids = s["ids"], full = s["ids_full"];
      EXPECT_EQ((*tokenizer)->encode(text, {.add_bos = false}), ids) << text;
      EXPECT_EQ((*tokenizer)->encode(text), full) << text;
      EXPECT_EQ((*tokenizer)->decode(ids, true), std::string(s["decoded"])) << text;
      strings++;
    }
  }
  EXPECT_GE(strings, 40u);
}

TEST(GoldenFolders, PromptsAreThoseOfTransformers) {
  size_t prompts = 0;
  for (const FolderCase& c : folder_cases()) {
    SCOPED_TRACE(c.name);
    const ModelSource source = opened(c.folder);
    const auto tokenizer = Tokenizer::create(source.metadata());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    const auto chat = ChatTemplate::of(source.metadata(), **tokenizer);
    ASSERT_TRUE(chat) << chat.error().message;
    EXPECT_EQ(chat->origin, ChatTemplate::Origin::File);
    for (const auto& one : c.golden["chat"]) {
      const Json variables = {{"messages", one["messages"]},
                              {"add_generation_prompt", one.value("add_generation_prompt", false)}};
      const auto rendered = chat->render(variables, {});
      ASSERT_TRUE(rendered) << rendered.error().message;
      EXPECT_EQ(rendered->text, std::string(one["expected"]));
      EXPECT_EQ((*tokenizer)->encode(rendered->text, {.add_bos = false}),
                one["ids"].get<std::vector<Token>>());
      prompts++;
    }
  }
  EXPECT_GE(prompts, 2u);
}

double divergence(const float* want, const float* got, size_t n) {
  const auto logsum = [n](const float* x) {
    const double top = *std::max_element(x, x + n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += std::exp(x[i] - top);
    return top + std::log(sum);
  };
  const double a = logsum(want), b = logsum(got);
  double kl = 0;
  for (size_t i = 0; i < n; i++) kl += std::exp(want[i] - a) * ((want[i] - a) - (got[i] - b));
  return kl;
}

TEST(GoldenFolders, LogitsAreNearTheExactOnesAndTheBitsThoseOfTheTwin) {
  for (const FolderCase& c : folder_cases()) {
    SCOPED_TRACE(c.name);
    EngineOptions o;
    o.run.cache_type = DType::F32, o.run.context = 512, o.run.logit_rows = o.run.batch;
    auto folder = open_engine(c.folder, o), twin = open_engine(c.twin.empty() ? c.folder : c.twin, o);
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(twin) << twin.error().message;
    const size_t vocabulary = c.golden["n_vocab"];
    const bool exact = std::string(c.golden["weights"]) == "f32";
    double most = 0, kl = 0;
    size_t rows = 0;
    for (const auto& k : c.golden["cases"]) {
      const std::vector<float> want = base64_floats(k["logits_ref64"]);
      const std::vector<int> positions = k["positions"];
      const std::vector<int32_t> tokens = k["tokens"];
      const std::vector<float> got = folder->logits(tokens, positions),
                               other = twin->logits(tokens, positions);
      ASSERT_EQ(got.size(), want.size());
      EXPECT_EQ(bits_differ(got, other), "");
      for (size_t r = 0; r < positions.size(); r++, rows++) {
        kl += divergence(&want[r * vocabulary], &got[r * vocabulary], vocabulary);
        for (size_t i = r * vocabulary; i < (r + 1) * vocabulary; i++)
          most = std::isfinite(got[i]) ? std::max(most, std::fabs(double(got[i]) - want[i])) : INFINITY;
      }
    }
    std::printf("%-24s max %.1e KL %.1e\n", c.name.c_str(), most, kl / double(rows));
    EXPECT_LE(most, exact ? 1e-3 : 0.2);
    EXPECT_LE(kl / double(rows), exact ? 1e-6 : 2e-4);
  }
}

// Metadata and tensors are those that gguf-py wrote, so that nothing behind the folder can tell the two
// apart.
TEST(GoldenFolders, MetadataAndTensorsAreThoseOfTheTwin) {
  for (const FolderCase& c : folder_cases()) {
    SCOPED_TRACE(c.name);
    const ModelSource folder = opened(c.folder), twin = opened(c.twin.empty() ? c.folder : c.twin);
    EXPECT_EQ(folder.tensors().size(), twin.tensors().size());
    for (const StoredTensor& t : twin.tensors()) {
      const StoredTensor* mine = folder.tensors().find(t.name);
      ASSERT_TRUE(mine) << t.name;
      EXPECT_EQ(mine->type, t.type) << t.name;
      EXPECT_EQ(mine->rank, t.rank) << t.name;
      EXPECT_TRUE(std::equal(t.dim, std::end(t.dim), mine->dim)) << t.name;
      const auto want = twin.read(t), got = folder.read(*mine);
      ASSERT_TRUE(want && got);
      // The divisors of llama3's rule were computed in floats there.
      EXPECT_TRUE(t.name == "rope_freqs.weight" || *got == *want) << t.name;
      // Any part of a tensor is that part of its bytes.
      std::vector<std::byte> part(std::min<size_t>(got->size(), 101));
      const size_t at = (got->size() - part.size()) / 2 | 1;
      part.resize(std::min(part.size(), got->size() - at));
      ASSERT_TRUE(folder.read(*mine, at, part.data(), part.size()));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), got->begin() + long(at))) << t.name;
    }
    for (const auto& [key, entry] : twin.metadata()) {
      if (key == "general.name" || key.starts_with("tokenizer.ggml.scores")) continue;
      const MetadataEntry* mine = folder.metadata().find(key);
      ASSERT_TRUE(mine) << key;
      EXPECT_EQ(folder.metadata().number(key), twin.metadata().number(key)) << key;
      EXPECT_EQ(folder.metadata().string(key), twin.metadata().string(key)) << key;
      if (const MetadataArray* list = twin.metadata().array(key)) {
        const MetadataArray* own = folder.metadata().array(key);
        ASSERT_TRUE(own) << key;
        EXPECT_EQ(own->strings(), list->strings()) << key;
        EXPECT_EQ(own->integers(), list->integers()) << key;
      }
    }
  }
}

}  // namespace
}  // namespace gimbal::test
