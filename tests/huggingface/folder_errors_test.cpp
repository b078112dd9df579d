// Folders that lack something, that are damaged or hostile: each is refused with its reason, and never more
// is read than there is.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "huggingface/folder.h"
#include "huggingface/json_text.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

// A copy of a golden folder that a test may damage.
std::string copied_folder(const std::string& name) {
  static int number = 0;
  const std::string to = temporary_path("folder" + std::to_string(number++));
  fs::copy(golden_dir() + "/hf/" + name, to);
  for (const auto& entry : fs::directory_iterator(to)) fs::permissions(entry, fs::perms::owner_all);
  return to;
}

std::string message_of(const std::string& folder, Code expected = Code::Malformed) {
  const auto source = open_source(folder);
  EXPECT_FALSE(source);
  if (source) return "";
  EXPECT_EQ(source.error().code, expected) << source.error().message;
  return source.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void change(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = *read_file(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  ASSERT_TRUE(write_file(path, text));
}

TEST(FolderErrors, HostileFoldersAreRefused) {
  int folders = 0;
  const auto verdicts = read_json(golden_dir() + "/hostile/verdicts.json");
  for (const auto& c : verdicts["cases"]) {
    const std::string file = c["file"];
    if (!file.starts_with("dir-")) continue;
    EXPECT_GT(message_of(golden_dir() + "/hostile/" + file).size(), 20u) << file;
    folders++;
  }
  EXPECT_GE(folders, 1);
}

TEST(FolderErrors, MissingFilesAreNamed) {
  for (const char* name : {"config.json", "tokenizer.json", "model-00002-of-00003.safetensors"}) {
    const std::string folder = copied_folder("qwen3-f16-sharded");
    fs::remove(folder + "/" + name);
    EXPECT_TRUE(has(message_of(folder), name)) << name;
  }
  const std::string folder = copied_folder("qwen3-f16-sharded");
  fs::remove(folder + "/model.safetensors.index.json");
  EXPECT_TRUE(has(message_of(folder), "neither model.safetensors nor model.safetensors.index.json"));
  // What a model can do without.
  const std::string bare = copied_folder("qwen3-f16-sharded");
  for (const char* name : {"generation_config.json", "tokenizer_config.json", "chat_template.jinja"})
    fs::remove(bare + "/" + name);
  EXPECT_TRUE(open_source(bare));
}

TEST(FolderErrors, WeightsAloneAreNoModel) {
  const std::string file = golden_dir() + "/hf/qwen3-f16-sharded/model-00001-of-00003.safetensors";
  EXPECT_TRUE(has(message_of(file, Code::Unsupported), "weights alone"));
}

TEST(FolderErrors, UnknownFamiliesAreNamedWithTheKnownOnes) {
  const std::string folder = copied_folder("qwen3-f16-sharded");
  change(folder + "/config.json", "\"qwen3\"", "\"qwen9\"");
  const std::string message = message_of(folder, Code::Unsupported);
  EXPECT_TRUE(has(message, "'qwen9'") && has(message, "mixtral") && has(message, "gemma3_text")) << message;
}

TEST(FolderErrors, ConfigIsCheckedValueByValue) {
  for (const auto& [from, to, part] :
       {std::tuple{"\"hidden_size\": 64", "\"hidden_size\": \"wide\"",
                   "'hidden_size': expected a whole number"},
        {"\"num_attention_heads\": 4", "\"num_attention_heads\": -4", "'num_attention_heads'"},
        {"\"num_attention_heads\": 4", "\"num_attention_heads\": 0", "attention heads"},
        {"\"factor\": 2.0", "\"factor\": null", "'factor': expected a number"},
        {"\"rope_type\": \"yarn\"", "\"rope_type\": \"spiral\"", "'spiral'"},
        {"{", "[", "config.json"}}) {
    const std::string folder = copied_folder("qwen3-f16-sharded");
    change(folder + "/config.json", from, to);
    const auto source = open_source(folder);
    ASSERT_FALSE(source) << to;
    EXPECT_TRUE(has(source.error().message, part)) << source.error().message;
  }
}

TEST(FolderErrors, TokenizerIsCheckedValueByValue) {
  for (const auto& [from, to] :
       {std::pair{"\"!\": 0", "\"!\": 1"}, {"\"!\": 0", "\"!\": -1"}, {"\"!\": 0", "\"!\": 0.5"}}) {
    const std::string folder = copied_folder("qwen3-f16-sharded");
    change(folder + "/tokenizer.json", from, to);
    EXPECT_TRUE(has(message_of(folder), "tokenizer.json")) << to;
  }
}

// Shards lie in the folder itself, whatever the index says.
TEST(FolderErrors, AnIndexLeadsNowhereElse) {
  const std::string shard = "model-00001-of-00003.safetensors";
  for (const std::string outside : {"../", "./", "sub/", "/tmp/"}) {
    const std::string folder = copied_folder("qwen3-f16-sharded");
    fs::create_directory(folder + "/sub");
    fs::copy_file(folder + "/" + shard, folder + "/sub/" + shard);
    change(folder + "/model.safetensors.index.json", shard, outside + shard);
    EXPECT_TRUE(has(message_of(folder), "the name of a safetensors file in this folder")) << outside;
  }
}

// transformers writes null for a token that was not set: then the model's own counts.
TEST(FolderErrors, EndTokensOfNullAreThoseOfTheModel) {
  const std::string folder = copied_folder("qwen3-f16-sharded");
  change(folder + "/config.json", "\"eos_token_id\": 522", "\"eos_token_id\": [522, 520]");
  change(folder + "/generation_config.json", "\"eos_token_id\": 522", "\"eos_token_id\": null");
  const auto source = open_source(folder);
  ASSERT_TRUE(source) << source.error().message;
  const MetadataArray* ends = source->metadata().array("tokenizer.gimbal.stop_token_ids");
  ASSERT_TRUE(ends);
  EXPECT_EQ(ends->integers(), (std::vector<int64_t>{522, 520}));
}

TEST(FolderErrors, TensorsMustBeThoseOfTheFamily) {
  const std::string folder = copied_folder("qwen3-f16-sharded");
  const std::string shard = folder + "/model-00001-of-00003.safetensors";
  for (const auto& [from, to, part] :
       {std::tuple{"q_proj", "q_prof", "'model.layers.0.self_attn.q_prof.weight'"}}) {
    // The index must agree, or the folder is refused before.
    change(shard, from, to);
    std::string index = *read_file(folder + "/model.safetensors.index.json");
    for (size_t at = 0; (at = index.find("layers.0.self_attn.q_proj", at)) != index.npos; at++)
      index[at + 24] = 'f';
    ASSERT_TRUE(write_file(folder + "/model.safetensors.index.json", index));
    EXPECT_TRUE(has(message_of(folder, Code::Unsupported), part));
  }
}

TEST(FolderErrors, JsonIsBounded) {
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100; i++) deep += '[';
  for (int i = 0; i < 100; i++) deep += ']';
  JsonText json;
  EXPECT_FALSE(json.parse(deep + "}", "deep"));
  std::string wide = "{";
  for (int i = 0; i < 30000; i++) wide += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  EXPECT_FALSE(JsonText().parse(wide + "}", "wide"));
  EXPECT_FALSE(JsonText().parse("[1]", "list"));
  EXPECT_FALSE(JsonText().parse("1", "number"));
  EXPECT_FALSE(JsonText().parse("", "empty"));
  EXPECT_TRUE(json.parse("{\"a\": {\"b\": [1, \"x\", null, {\"c\": true}]}}", "right"));
  EXPECT_EQ(json.tree()["a"]["b"][3]["c"], true);
}

}  // namespace
}  // namespace gimbal::test
