// convert and quantize on the command line: parts and back, other metadata, adapters in the weights, smaller
// formats.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "files/gguf.h"
#include "support/adapters.h"
#include "support/cli.h"
#include "tensor/quant.h"

namespace gimbal::test {
namespace {

std::string plain_story() { return golden_dir() + "/stories/stories260K-f32.gguf"; }

std::string ids_told(const std::string& model) {
  return gimbal({"run", model, "-p", "Once upon a time", "--greedy", "-n", "12", "--print-tokens"}).out;
}

TEST(ConvertCommand, SplitsAndJoins) {
  const std::string out = temporary_path("parts.gguf"), one = temporary_path("one.gguf");
  const Json j = json_of(gimbal({"convert", plain_story(), out, "--split-max-tensors", "20", "--json"}));
  ASSERT_EQ(j["paths"].size(), 3u);
  const std::string first = j["paths"][0];
  EXPECT_TRUE(first.ends_with("parts-00001-of-00003.gguf")) << first;
  EXPECT_EQ(ids_told(first), ids_told(plain_story()));
  const std::string joined = temporary_path("joined.gguf");
  ASSERT_EQ(gimbal({"convert", first, joined}).code, 0);
  ASSERT_EQ(gimbal({"convert", plain_story(), one}).code, 0);
  EXPECT_TRUE(*read_file(joined) == *read_file(one));
  EXPECT_EQ(gimbal({"convert", plain_story(), out, "--split-max-tensors", "20"}).code, 2) << "parts exist";
  EXPECT_EQ(gimbal({"convert", plain_story(), out, "--split-max-size", "many"}).code, 2);
  const std::string sized = temporary_path("sized.gguf");
  EXPECT_EQ(
      json_of(gimbal({"convert", plain_story(), sized, "--split-max-size", "1M", "--json"}))["paths"].size(),
      2u);
}

TEST(ConvertCommand, EditsMetadata) {
  const std::string out = temporary_path("edited.gguf");
  ASSERT_EQ(
      gimbal({"convert", plain_story(), out, "--set", "general.name=Ada", "--set", "llama.context_length=256",
              "--set", "own.key=1.5", "--remove", "general.architecture", "--vocab-only"})
          .code,
      0);
  const auto file = open_gguf(out);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->metadata().string("general.name"), "Ada");
  EXPECT_EQ(file->metadata().unsigned_integer("llama.context_length"), 256u);
  EXPECT_EQ(file->metadata().number("own.key"), 1.5);
  EXPECT_FALSE(file->metadata().contains("general.architecture"));
  EXPECT_TRUE(file->tensors().empty()) << "the vocabulary alone";
  EXPECT_GT(file->metadata().array("tokenizer.ggml.tokens")->count, 0u);
  for (const char* wrong : {"llama.context_length=x", "general.name", "tokenizer.ggml.tokens=1"})
    EXPECT_EQ(gimbal({"convert", plain_story(), temporary_path("not.gguf"), "--set", wrong}).code, 2)
        << wrong;
  EXPECT_EQ(gimbal({"convert", plain_story(), temporary_path("not.gguf"), "--remove", "no.key"}).code, 2);
}

// The merged copy of support/adapters.h is computed in double precision.
TEST(ConvertCommand, AddsAdaptersToTheWeights) {
  const Adapted made = make_adapter(plain_story());
  const std::string out = temporary_path("merged-by-convert.gguf");
  const Ran ran = gimbal(
      {"convert", plain_story(), out, "--lora", format("{}:{}", made.adapter, kAdapterScale), "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(json_of(ran)["merged"], 0);
  const auto ours = open_gguf(out), theirs = open_gguf(made.merged), plain = open_gguf(plain_story());
  ASSERT_TRUE(ours && theirs && plain);
  ASSERT_EQ(ours->tensors().size(), plain->tensors().size());
  double most = 0, changed = 0;
  for (const StoredTensor& t : ours->tensors()) {
    const auto values = [&](const ModelSource& source) {
      const StoredTensor& of = *source.tensors().find(t.name);
      std::vector<float> all(size_t(of.values()));
      decode_tensor(of.type, source.read(of)->data(), of.values(), all.data());
      return all;
    };
    most = std::max(most, farthest(values(*ours), values(*theirs)));
    changed = std::max(changed, farthest(values(*ours), values(*plain)));
  }
  EXPECT_LT(most, 1e-5);
  EXPECT_GT(changed, 1e-2);
  const std::string q8 = golden_dir() + "/stories/stories260K-q8_0.gguf";
  const Ran refused = gimbal({"convert", q8, temporary_path("not.gguf"), "--lora", made.adapter});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("quantize the result"), std::string::npos) << refused.err;
}

TEST(QuantizeCommand, WritesChecksAndRefuses) {
  const std::string out = temporary_path("q8.gguf");
  const Json j = json_of(gimbal({"quantize", plain_story(), out, "Q8_0", "--json"}));
  EXPECT_EQ(j["mixture"], "Q8_0");
  EXPECT_EQ(j["written"], true);
  EXPECT_LT(j["bytes"], j["source_bytes"]);
  EXPECT_EQ(ids_told(out), ids_told(golden_dir() + "/stories/stories260K-q8_0.gguf")) << "the same weights";
  EXPECT_EQ(gimbal({"quantize", plain_story(), out, "Q8_0"}).code, 2) << "it exists";
  EXPECT_EQ(json_of(gimbal({"quantize", "--check", out, plain_story(), "--json"}))["same"], true);
  EXPECT_EQ(gimbal({"quantize", "--check", out, golden_dir() + "/stories/stories260K-f16.gguf"}).code, 1);
  EXPECT_EQ(gimbal({"quantize", "--check", plain_story(), out}).code, 2) << "it does not say how it was made";
  EXPECT_EQ(gimbal({"quantize", plain_story(), out, "Q8_0", "--force"}).code, 0);
  EXPECT_EQ(gimbal({"quantize", plain_story(), plain_story(), "Q8_0", "--force"}).code, 2)
      << "over its own source";
  const std::string dry = temporary_path("dry.gguf");
  EXPECT_EQ(json_of(gimbal({"quantize", plain_story(), dry, "Q4_K_M", "--dry-run", "--json"}))["written"],
            false);
  EXPECT_FALSE(std::filesystem::exists(dry));
  for (const Args& wrong :
       {Args{"Q4"}, Args{"Q8_0", "--tensor-type", "ffn=q9"}, Args{"Q8_0", "--tensor-type", "q4_0"},
        Args{"Q4_0", "--tensor-type", "(=q8_0"}, Args{"Q8_0", "--output-tensor-type", "i32"}}) {
    Args all{"quantize", plain_story(), dry};
    all.insert(all.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(gimbal(all).code, 2) << wrong.back();
  }
  EXPECT_EQ(gimbal({"quantize", plain_story(), dry, "Q8_0", "--imatrix", plain_story()}).code, 3)
      << "no importance matrix";
  EXPECT_FALSE(std::filesystem::exists(dry));
}

// Source, parts and result are folders and files in parts, too.
TEST(QuantizeCommand, FoldersAndParts) {
  const std::string out = temporary_path("folder-q.gguf");
  ASSERT_EQ(gimbal({"quantize", golden_dir() + "/hf/qwen3-f16-sharded", out, "Q4_K_M"}).code, 0);
  EXPECT_EQ(gimbal({"run", out, "-p", "a", "-n", "3", "--greedy"}).code, 0);
  const std::string parts = temporary_path("many.gguf"), again = temporary_path("many-q.gguf");
  const std::string first =
      json_of(gimbal({"convert", plain_story(), parts, "--split-max-tensors", "20", "--json"}))["path"];
  const Json j = json_of(gimbal({"quantize", first, again, "Q8_0", "--keep-split", "--json"}));
  ASSERT_EQ(j["paths"].size(), 3u);
  EXPECT_EQ(gimbal({"quantize", "--check", j["paths"][0], first}).code, 0);
}

}  // namespace
}  // namespace gimbal::test
