// Whole models on the emulator of GPUs: the bits of the CPU, and no race in any kernel of a model.
#include "gpu/models_checks.h"

namespace gimbal::test {
namespace {

ModelSetting emulator(const std::string& options = "") { return {"emulator", options}; }

TEST(EmulatedModels, GiveTheBitsOfTheCpu) { check_bits_of_the_cpu(emulator()); }
// Lanes that exchange values by themselves, in sub-groups of the sizes that lavapipe does not have.
TEST(EmulatedModels, GiveTheBitsOfTheCpuInSubgroups) {
  check_bits_of_the_cpu(emulator("subgroup=32"), Which::NewUses);
  check_every_cache(emulator("subgroup=64"));
}
TEST(EmulatedModels, GiveTheBitsOfTheCpuWithEveryCache) { check_every_cache(emulator()); }
TEST(EmulatedModels, GiveTheSameBitsForAnyBatchAndSplitAndInParts) {
  check_batches_and_splits(emulator(), {{"emulator", "part=1\nseed=5", DType::F16, 1, 0}});
}
TEST(EmulatedModels, GiveTheBitsOfTheCpuWithAnAdapter) { check_lora(emulator()); }
TEST(EmulatedModels, ContinueAsTheReferenceDoes) {
  check_continuations(emulator(), "stories260K-q8_0.gguf");  // the test above has every format
}
TEST(EmulatedModels, DrawTheSameTokensFromTheLeadingLogits) { check_sampling(emulator()); }
TEST(EmulatedModels, TellTheStoryThatTheCpuTells) { check_story(emulator()); }

// No kernel of a model reaches outside its buffers, and no two lanes touch a word in an undefined
// order.
TEST(EmulatedModels, RaceNowhere) {
  const auto tokens = some_tokens(20);
  for (const char* name : {"stories/stories260K-f32", "quant/q-q4_0", "quant/q-q6_k"}) {
    const std::string m = golden_dir() + "/" + name + ".gguf";
    for (DType cache : {DType::F16, DType::F32}) {
      const std::string subgroup = cache == DType::F16 ? "1" : "32";
      const ModelSetting checked{"emulator", "racecheck=1\nseed=3\nsubgroup=" + subgroup, cache, 16, 0},
          cpu{"cpu", "threads=2", cache, 16, 0};
      EXPECT_EQ(bits_differ(logits_of(m, cpu, tokens), logits_of(m, checked, tokens)), "") << m;
    }
  }
}

}  // namespace
}  // namespace gimbal::test
