// What architectures declare, on the kernels of GPUs: caches that hold a window only, states that every row
// changes, experts. The bits are the CPU's.
#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/declared.h"
#include "support/peer_golden.h"
#include "support/plain_weights.h"

namespace gimbal::test {
namespace {

std::vector<float> computed(const char* device, const ModelArch& arch, const Form& form, int batch) {
  const std::string bytes = model_file(form);
  auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
  EXPECT_TRUE(file) << file.error().message;
  const auto opened = open_one(device, 0, device == std::string("cpu") ? "threads=1" : "");
  RunOptions o;
  o.context = 200, o.batch = batch, o.logit_rows = batch, o.cache_type = DType::F32, o.arch = &arch;
  auto m = load_placed(*file, {{opened.get(), 2, ""}}, o);
  if (!m) {
    ADD_FAILURE() << m.error().message;
    return {};
  }
  return logits_of(**m, any_tokens(150, kVocabulary));
}

TEST(EmulatedDeclared, CachesThatHoldTheWindowOnly) {
  const auto want = computed("cpu", kUnbounded, {}, 16);
  EXPECT_EQ(bits_differ(want, computed("emulator", kUnbounded, {}, 16)), "");
  EXPECT_EQ(bits_differ(want, computed("emulator", kWindowed, {}, 16)), "");
  EXPECT_EQ(bits_differ(want, computed("emulator", kWindowed, {}, 7)), "");
}

TEST(EmulatedDeclared, StatesAndExperts) {
  const auto want = computed("cpu", kMixers, kMixersForm, 16);
  EXPECT_EQ(bits_differ(want, computed("cpu", kMixers, kMixersForm, 1)), "");
  EXPECT_EQ(bits_differ(want, computed("emulator", kMixers, kMixersForm, 16)), "");
  EXPECT_EQ(bits_differ(want, computed("emulator", kMixers, kMixersForm, 5)), "");
}

// Positions that an indexer chooses, of more than two pages.
TEST(EmulatedDeclared, ChosenPositions) {
  for (const char* golden : {"deepseek32-chosen", "glm-dsa-chosen"}) {
    const std::string bytes = plain_model(peer_golden(golden));
    auto file = parse_gguf(std::as_bytes(std::span(bytes)), "small.gguf");
    ASSERT_TRUE(file) << file.error().message;
    const auto of = [&](const char* device, const char* options, int batch, DType cache) {
      const auto opened = open_one(device, 0, options);
      RunOptions o;
      o.context = 200, o.batch = batch, o.logit_rows = batch, o.cache_type = cache;
      const auto m = load_on(*opened, *file, o);
      return m ? logits_of(*m, any_tokens(140, 500)) : std::vector<float>();
    };
    for (DType cache : {DType::F32, DType::F16, DType::BF16}) {
      const auto want = of("cpu", "threads=1", 20, cache);
      EXPECT_EQ(bits_differ(want, of("emulator", "racecheck=1\nseed=3", 20, cache)), "") << golden;
      if (cache == DType::F16) { EXPECT_EQ(bits_differ(want, of("emulator", "", 3, cache)), "") << golden; }
    }
  }
}

}  // namespace
}  // namespace gimbal::test
