// What architectures declare, on the kernels of GPUs: caches that hold a window only, states that every row
// changes, experts. The bits are the CPU's.
#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/declared.h"

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

}  // namespace
}  // namespace gimbal::test
