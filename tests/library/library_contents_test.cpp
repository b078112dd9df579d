// The contents of libraries, through the public interface.
#include <gimbal/library_contents.h>
#include <gtest/gtest.h>

namespace {

using namespace gimbal;

const std::string kData = GIMBAL_SOURCE_DIR "/tests/data/libraries/";

TEST(LibraryContents, OfASharedLibrary) {
  const auto found = library_contents(kData + "llama-x86_64.so");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->summary, "bitnet, llama, ggml; CPU only");
  EXPECT_TRUE(found->gpus.empty());
  EXPECT_EQ(found->kernels, std::vector<std::string>{"I2S_QK256 (CPU)"});
  ASSERT_EQ(found->machines.size(), 1u);
  EXPECT_EQ(found->machines[0].machine, "x86-64");
  EXPECT_EQ(found->machines[0].needed, std::vector<std::string>{"libother.so"});
  EXPECT_EQ(found->machines[0].exported, 5u);
  ASSERT_EQ(found->families.size(), 4u);
  EXPECT_EQ(found->families[1].key, "llama");
  EXPECT_EQ(found->families[1].names,
            (std::vector<std::string>{"llama_data", "llama_decode", "llama_n_ctx"}));
}

TEST(LibraryContents, OfAFatFileAndOfGpus) {
  EXPECT_EQ(library_contents(kData + "llama-fat.dylib")->machines.size(), 2u);
  const auto gpu = library_contents(kData + "gpu.so");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->gpus.front(), "CUDA");
  EXPECT_EQ(gpu->machines[0].gpu_targets,
            (std::vector<std::string>{"compute_75", "sm_80", "sm_90", "gfx90a", "gfx1100", "SPIR-V 1.5"}));
}

TEST(LibraryContents, Failures) {
  EXPECT_EQ(library_contents("/nowhere/libllama.so").error().code, Code::NotFound);
  EXPECT_EQ(library_contents(kData + "expected.json").error().code, Code::Malformed);
}

}  // namespace
