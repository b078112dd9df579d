// Folders as Hugging Face has them, on the command line: they run, plan and tell what they are like GGUF
// files, convert to one with the same bits, and say what is missing.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const char* name) { return golden_dir() + "/hf/" + name; }

TEST(Folders, TellWhatTheyAre) {
  const Json j = json_of(gimbal({"info", folder_of("qwen3-f16-sharded") + "/", "--json", "--tensors"}));
  EXPECT_EQ(j["name"], "qwen3-f16-sharded");
  EXPECT_EQ(j["format"], "safetensors");
  EXPECT_TRUE(j["gguf_version"].is_null());
  EXPECT_EQ(j["architecture"], "qwen3");
  EXPECT_EQ(j["supported"], true);
  EXPECT_EQ(j["shape"]["layers"], 2);
  EXPECT_EQ(j["tensors"].size(), 24u);
  EXPECT_EQ(j["metadata"]["qwen3.rope.scaling.type"], "yarn");
  const Ran people = gimbal({"info", folder_of("qwen3-f16-sharded")});
  EXPECT_NE(people.out.find("of tokenizer.json (qwen2)"), std::string::npos) << people.out;
}

TEST(Folders, ConvertToAFileWithTheSameBits) {
  for (const char* name : {"qwen3-f16-sharded", "mixtral-bf16"}) {
    SCOPED_TRACE(name);
    const std::string out = temporary_path(std::string(name) + ".gguf");
    const Ran made = gimbal({"convert", folder_of(name), out, "--json"});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(json_of(made)["path"], out);
    EXPECT_EQ(gimbal({"convert", folder_of(name), out}).code, 2) << "it exists";
    const std::string first = *read_file(out);
    ASSERT_EQ(gimbal({"convert", folder_of(name), out, "--force"}).code, 0);
    EXPECT_EQ(*read_file(out), first);
    std::string logits[2], ids[2];
    int i = 0;
    for (const std::string& model : {folder_of(name), out}) {
      const std::string path = temporary_path("logits" + std::to_string(i));
      const Ran r = gimbal({"logits", model, "--tokens", "5,99,300,7,42", "--positions", "all", "-o", path});
      ASSERT_EQ(r.code, 0) << r.err;
      logits[i] = *read_file(path);
      ids[i++] = gimbal({"tokenize", model, "Caf\x65\xcc\x81 12345 two  spaces"}).out;
    }
    EXPECT_FALSE(logits[0].empty());
    EXPECT_EQ(logits[0], logits[1]);
    EXPECT_EQ(ids[0], ids[1]) << "the rules of the tokenizer are in the file";
  }
  EXPECT_EQ(gimbal({"convert", folder_of("qwen3-f16-sharded")}).code, 2);
}

TEST(Folders, RunPlanAndCertify) {
  const std::string folder = folder_of("qwen3-f16-sharded"), out = temporary_path("of-folder.json");
  const Ran plan = gimbal({"plan", folder, "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Ran run = gimbal({"run", folder, "-p", "memory", "-n", "8", "--seed", "3", "--certificate", out});
  ASSERT_EQ(run.code, 0) << run.err;
  const Ran audit = gimbal({"audit", out, "-m", folder});
  EXPECT_EQ(audit.code, 0) << audit.out << audit.err;
  // Of another state of the folder the digest is another.
  const std::string copy = temporary_path("copy");
  fs::copy(folder, copy);
  for (const auto& entry : fs::directory_iterator(copy)) fs::permissions(entry, fs::perms::owner_all);
  ASSERT_TRUE(write_file(copy + "/generation_config.json", "{\"eos_token_id\": 522 }"));
  EXPECT_EQ(gimbal({"audit", out, "-m", copy}).code, 1);
}

TEST(Folders, ThatLackAFileAreBadModels) {
  for (const auto& entry : fs::directory_iterator(golden_dir() + "/hostile"))
    if (entry.is_directory()) {
      const Ran r = gimbal({"info", entry.path().string()});
      EXPECT_EQ(r.code, 3) << entry.path() << r.err;
      EXPECT_EQ(r.err.rfind("error: ", 0), 0u) << r.err;
    }
  const std::string empty = temporary_path("empty");
  fs::create_directories(empty);
  const Ran r = gimbal({"info", empty});
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("config.json"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace gimbal::test
