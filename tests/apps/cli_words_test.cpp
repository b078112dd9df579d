// The words that users of other programs type.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/cli.h"

namespace gimbal::test {
namespace {

namespace fs = std::filesystem;

TEST(Words, OfLlamaCppAreTranslated) {
  const std::string expected =
      gimbal({"run", "-p", "Once", "-n", "6", "--temp", "0.5", "--seed", "3", "--ctx", "64"}).out;
  EXPECT_EQ(gimbal({"run", "-m", "default", "-p", "Once", "--n-predict", "6", "--temperature", "0.5", "-s",
                    "3", "-c", "64"})
                .out,
            expected);
  EXPECT_EQ(gimbal({"run", "--model", "default", "-p", "Once", "--n-predict=6", "--temperature=0.5", "--seed",
                    "3", "--ctx-size", "64"})
                .out,
            expected);
  EXPECT_SAYS(gimbal({"run", "-p", "x", "-n", "1", "-ngl", "5"}).err, "--gpu-layers 5");
  EXPECT_SAYS(gimbal({"run", "default", "-m", "default", "-p", "x"}).err, "two models");
}

TEST(Words, IgnoreEosGoesOnBehindTheEnd) {
  const Args args{"run", "-p", "Once upon a time", "--greedy", "--ctx", "512", "--json"};
  Args on = args;
  on.push_back("--ignore-eos");
  EXPECT_EQ(json_of(gimbal(args))["finish"], "stop-token");
  EXPECT_EQ(json_of(gimbal(on))["finish"], "context-full");
}

TEST(Words, OfOtherProgramsGetAHint) {
  const std::pair<const char*, const char*> hints[] = {{"list", "gimbal models"},
                                                       {"ls", "gimbal models"},
                                                       {"show", "gimbal info"},
                                                       {"chat", "gimbal run"},
                                                       {"pull", "downloads nothing"},
                                                       {"quantize", "makes no model files"},
                                                       {"x/y.gguf", "gimbal run x/y.gguf"}};
  for (const auto& [word, words] : hints) {
    Ran r = gimbal({word});
    EXPECT_EQ(r.code, 2) << word;
    EXPECT_SAYS(r.err, words);
  }
  for (const char* address : {"https://example.org/m.gguf", "hf.co/org/name"})
    EXPECT_SAYS(gimbal({"run", address, "-p", "x"}).err, "downloads nothing");
}

TEST(Words, NamesOfModelsWithoutTagAndInAnyCase) {
  const std::string home = temporary_path("models-home");
  const fs::path hub = fs::path(home) / ".cache/huggingface/hub/models--Org--Tiny-GGUF/snapshots/abc",
                 ollama = fs::path(home) / ".ollama/models";
  fs::create_directories(hub);
  fs::create_directories(ollama / "manifests/registry.ollama.ai/library/evil");
  fs::create_directories(ollama / "blobs");
  fs::copy_file(story_file("f32"), hub / "tiny-f32.GGUF");
  fs::copy_file(story_file("q8_0"), ollama / "blobs/sha256-0");
  ASSERT_TRUE(write_file(
      (ollama / "manifests/registry.ollama.ai/library/evil/latest").string(),
      R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:0"}]})"));
  for (const char* name : {"evil", "EVIL:latest", "org/tiny-gguf", "Org/Tiny-GGUF/tiny-f32", "TINY-F32"}) {
    Ran r = gimbal({"info", name, "--json"}, {.environment = {{"HOME", home}}});
    EXPECT_EQ(r.code, 0) << name << ": " << r.err;
  }
}

TEST(Words, WhatIsThereIsNotSaidToBeMissing) {
  const std::string link = temporary_path("dangling.gguf"), loop = temporary_path("loop.gguf");
  ASSERT_EQ(symlink("/no/such/file", link.c_str()), 0);
  ASSERT_EQ(symlink(loop.c_str(), loop.c_str()), 0);
  EXPECT_SAYS(gimbal({"info", link}).err, "its link leads to no file");
  EXPECT_SAYS(gimbal({"info", loop}).err, "symbolic links");
}

}  // namespace
}  // namespace gimbal::test
