// A rotated cache: the same function of the model, with less lost by rounding; where it is chosen, and where
// it cannot be. tests/runtime/same_bits_test.cpp has its bits, kernels_test the op.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "base/file.h"
#include "base/format.h"
#include "discovery/registry.h"
#include "files/gguf.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

constexpr DType kQuantized[] = {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL};

std::vector<int32_t> numbered_tokens(int n) {
  std::vector<int32_t> all;
  for (int i = 0; i < n; i++) all.push_back(3 + i * 7 % 500);
  return all;
}

// All logits of these tokens; empty if the model cannot have this cache, or is refused whatever its cache is
// (golden_logits_test names those).
std::vector<float> logits_of(const std::string& path, DType cache, CacheRotation rotation) {
  EngineOptions o;
  o.run.cache_type = cache, o.run.cache_rotation = rotation, o.run.context = 64, o.run.logit_rows = 64;
  auto e = open_engine(path, o);
  if (e) return e->all_logits(numbered_tokens(60));
  return {};
}

double mean_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += std::fabs(double(a[i]) - double(b[i]));
  return sum / double(a.size());
}

// A model with one value of each value head far above the others, which its output matrix scales back: the
// same function as before. Its cache rounds the other values of the block away, but not if they are rotated.
TEST(CacheRotation, SpreadsALargeValue) {
  const std::string path = golden_dir() + "/quant/q-f16.gguf";
  std::string bytes = *read_file(path);
  auto file = open_gguf(path);
  ASSERT_TRUE(file);
  const Config c = *configure(*file);
  // Times 2^n; numbers too small for an exact result become 0 with their effect.
  const auto scale = [&](size_t at, int n) {
    uint16_t half = 0;
    std::memcpy(&half, &bytes[at], 2);
    const int exponent = (half >> 10 & 31) + n;
    half = (half & 0x7c00) == 0 || exponent < 1 ? 0 : uint16_t((half & 0x83ff) | exponent << 10);
    ASSERT_LT(exponent, 31);
    std::memcpy(&bytes[at], &half, 2);
  };
  constexpr int kPlace = 5, kPower = 5;
  for (int layer = 0; layer < c.layers; layer++) {
    const StoredTensor* v = file->tensors().find(format("blk.{}.attn_v.weight", layer));
    const StoredTensor* o = file->tensors().find(format("blk.{}.attn_output.weight", layer));
    ASSERT_TRUE(v && o && v->type == DType::F16 && o->type == DType::F16);
    const auto width = size_t(v->dim[0]), columns = size_t(o->dim[0]);
    for (size_t head = 0; head < size_t(c.kv_heads); head++)
      for (size_t i = 0; i < width; i++)
        scale(v->offset + 2 * ((head * size_t(c.head_dim) + kPlace) * width + i), kPower);
    for (size_t row = 0; row < size_t(o->dim[1]); row++)
      for (size_t head = 0; head < columns / size_t(c.head_dim); head++)
        scale(o->offset + 2 * (row * columns + head * size_t(c.head_dim) + kPlace), -kPower);
  }
  const std::string scaled = temporary_path("scaled.gguf");
  ASSERT_TRUE(write_file(scaled, bytes));
  const auto want = logits_of(scaled, DType::F32, CacheRotation::Auto);
  for (const DType cache : kQuantized) {
    const auto plain = logits_of(scaled, cache, CacheRotation::Off),
               rotated = logits_of(scaled, cache, CacheRotation::On);
    const double lost = mean_difference(plain, want), less = mean_difference(rotated, want);
    std::printf("%s cache: mean %.1e from f32, rotated %.1e\n", info(cache).name, lost, less);
    EXPECT_LT(less, 0.7 * lost) << info(cache).name;
    const bool by_itself = cache == DType::Q5_0 || cache == DType::IQ4_NL;
    EXPECT_EQ(logits_of(scaled, cache, CacheRotation::Auto), by_itself ? rotated : plain) << info(cache).name;
  }
}

// Grouped heads, layers that share keys and values, latent attention, windows, encoders: in 8 bits the
// logits stay as near to those with a cache in f32 as without a rotation. A forgotten rotation of one of the
// four values moves them a hundred times as far.
TEST(CacheRotation, IsTheSameFunctionInEveryArchitecture) {
  int measured = 0;
  for (const char* folder : {"arch", "more/arch"})
    for (const std::string& path : golden_files(folder, ".gguf")) {
      const auto want = logits_of(path, DType::F32, CacheRotation::Auto),
                 plain = logits_of(path, DType::Q8_0, CacheRotation::Off);
      if (plain.empty()) continue;  // no whole blocks
      if (plain == want) continue;  // no keys and values: below
      const auto rotated = logits_of(path, DType::Q8_0, CacheRotation::On);
      const double lost = mean_difference(plain, want), its = mean_difference(rotated, want);
      std::printf("%-40s %.1e from f32, rotated %.1e\n", path.substr(golden_dir().size() + 1).c_str(), lost,
                  its);
      EXPECT_LT(its, 2 * lost) << path;
      EXPECT_NE(rotated, plain) << path;
      measured++;
    }
  EXPECT_GE(measured, 3) << "models with heads of whole blocks";
}

TEST(CacheRotation, IsChosenByTheFormatAndHasAReason) {
  using enum CacheRotation;
  for (const auto& [type, wish, name, why] :
       {std::tuple(DType::Q8_0, Auto, "q8_0", "8 bits lose little without it"),
        {DType::Q8_0, On, "q8_0, rotated", "'cache_rotation' is on"},
        {DType::Q5_0, Auto, "q5_0, rotated", "4 and 5 bits lose less of rotated values"},
        {DType::IQ4_NL, Auto, "iq4_nl, rotated", "4 and 5 bits lose less of rotated values"},
        {DType::Q4_1, Auto, "q4_1", "q4_1 has a minimum for each block, and some models lose by a rotation"},
        {DType::IQ4_NL, Auto, "iq4_nl, rotated", "4 and 5 bits lose less of rotated values"},
        {DType::Q5_0, Off, "q5_0", "'cache_rotation' is off"},
        {DType::Q4_0, Auto, "q4_0", "q4_0 keeps the bits that it had before rotations"},
        {DType::Q4_0, On, "q4_0, rotated", "'cache_rotation' is on"},
        {DType::F16, Auto, "f16", "a KV cache in f16 is not quantized"}}) {
    SCOPED_TRACE(name);
    const auto choice = choose_rotation(wish, type, true);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(choice->why, why);
    EXPECT_EQ(cache_name(info(type).name, choice->rotated), name);
    DType read_type = DType::F32;
    CacheRotation read = Auto;
    ASSERT_TRUE(read_cache_name(name, read_type, read));
    EXPECT_EQ(read_type, type);
    EXPECT_EQ(read, choice->rotated ? On : Off);
  }
  DType type = DType::F32;
  CacheRotation rotation = Auto;
  for (const char* none : {"q9, rotated", "rotated", ", rotated", "f16, rotated", "q5_0,rotated", ""})
    EXPECT_FALSE(read_cache_name(none, type, rotation)) << none;
}

TEST(CacheRotation, IsRefusedWhereNothingCanBeRotated) {
  auto device = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(device);
  const auto plan = [&](const char* model, DType type, CacheRotation wish, int first_layers = 0) {
    auto file = open_gguf(golden_dir() + "/" + model + ".gguf");
    EXPECT_TRUE(file);
    RunOptions o;
    o.cache_type = type, o.cache_rotation = wish, o.first_layers = first_layers, o.context = 64;
    return make_model_plan(*file, *device->device, o);
  };
  const auto refused = [](const Result<ModelPlan>& plan, const char* message) {
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Code::Usage);
    EXPECT_EQ(plan.error().message, message);
    EXPECT_STREQ(plan.error().field, "cache_rotation");
  };
  refused(plan("quant/q-f16", DType::F16, CacheRotation::On),
          "'cache_rotation' is on, and a KV cache in f16 is not quantized");
  refused(plan("more/arch/mamba2", DType::Q8_0, CacheRotation::On),
          "'cache_rotation' is on, and this model keeps no keys and values");
  const auto none = plan("more/arch/mamba2", DType::Q5_0, CacheRotation::Auto);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(none->rotation.rotated);
  EXPECT_EQ(none->rotation.why, "this model keeps no keys and values");
  const auto some = plan("quant/q-f16", DType::Q5_0, CacheRotation::Auto);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_TRUE(some->rotation.rotated);
  // Heads that quantized formats cannot hold are refused before, whatever the rotation is.
  const auto heads = plan("stories/stories260K-f32", DType::Q5_0, CacheRotation::On);
  ASSERT_FALSE(heads);
  EXPECT_STREQ(heads.error().field, "cache_type");
}

}  // namespace
}  // namespace gimbal::test
