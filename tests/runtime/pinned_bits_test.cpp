// The first law across kinds of CPU: a test on one machine cannot compare its logits with another machine's,
// so the bits are written down here, as a hash over the logits of fixed tokens. Every variant of every build
// (x86 and ARM, see `make test-aarch64`) must give exactly these. A change of the order of a sum, of a
// rounding or of a polynomial changes them too: that is a change of the definition of an op, to be made on
// purpose. The failure prints the new numbers.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>

#include "audit/certificate.h"
#include "base/format.h"
#include "support/engine.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

struct Pin {
  const char* model;
  DType cache;
  uint64_t hash;  // of the baseline variant on x86-64
};
const Pin kPins[] = {
    {"stories/stories260K-f32", DType::F32, 0x31fbcf49c3165fa2},
    {"stories/stories260K-f32", DType::F16, 0x90f52c0fd86f240c},
    {"stories/stories260K-f32", DType::BF16, 0xa753ea78c1c6b08e},
    {"stories/stories260K-f16", DType::F16, 0x5c549f62d635370f},
    {"stories/stories260K-q8_0", DType::F16, 0x72ffbaef1a2db335},
    {"stories/stories260K-q4_0", DType::F16, 0x0ff7499a46ca5319},
    {"quant/q-f16", DType::F16, 0xd8a65a988fc2bf6d},
    {"quant/q-bf16", DType::F16, 0xcada6c0f2768e0a7},
    {"quant/q-q8_0", DType::F16, 0x76ba93c13094f8b4},
    {"quant/q-q4_0", DType::F16, 0xf1d36fcb5e8a4ceb},
    {"quant/q-q6_k", DType::F16, 0x48c0e75ea5ae9307},
    {"arch/llama31-ropefreqs", DType::F16, 0x822c43d1d4d9a7b1},
    {"arch/llama31-ropefreqs", DType::Q8_0, 0xdcd4ad5534eb2c73},
    {"arch/llama31-ropefreqs", DType::Q4_0, 0xa7bd9e4d4aec0257},
    {"quant/q-q8_0", DType::Q8_0, 0x8a546a11fa476363},
    {"quant/q-q8_0", DType::Q4_0, 0x4bc0895618c8e711},
    {"arch/qwen2", DType::F16, 0xf363bd735b5bc1ab},
    {"arch/qwen2-yarn", DType::F16, 0x2853bace534fa112},
    {"arch/bitnet", DType::F16, 0xe7ebce7712bf9f32},
    {"arch/bitnet-b158", DType::F16, 0xe11a3f67552e20fb},
    {"arch/bitnet-b158-i2s", DType::F16, 0xfd8b22366cbdda69},
};

// FNV-1a of the values' bits as little-endian bytes, whatever the machine's own order is.
uint64_t hash_of(const std::vector<float>& values) {
  uint64_t h = 0xcbf29ce484222325;
  for (float v : values)
    for (int shift = 0; shift < 32; shift += 8)
      h = (h ^ (std::bit_cast<uint32_t>(v) >> shift & 0xff)) * 0x100000001b3;
  return h;
}

// 70 tokens: more than a page of the cache.
std::vector<int32_t> fixed_tokens() {
  std::vector<int32_t> t;
  uint32_t x = 2024;
  for (int i = 0; i < 70; i++) t.push_back(int32_t((x = x * 1664525u + 1013904223u) >> 8) % 512);
  return t;
}

// "" and "foob", as in the test vectors of draft-eastlake-fnv.
TEST(PinnedBits, HashOfKnownBytes) {
  EXPECT_EQ(hash_of({}), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_of({std::bit_cast<float>(0x626f6f66u)}), 0xdd120e790c2512afu);
}

// Certificates of answers name the arithmetic by a number (audit/certificate.h). Other pins: another number
// here and there. A pin that is added counts, too, but needs no new number if no older one changes.
TEST(PinnedBits, TheVersionOfTheArithmeticIsThatOfThePins) {
  constexpr struct {
    int version;
    size_t pins;
    uint64_t hash;  // of these first pins
  } kVersions[] = {{1, 21, 0x5a0513b33f78642b}};
  const auto& now = kVersions[std::size(kVersions) - 1];
  EXPECT_EQ(now.version, kArithmetic);
  ASSERT_LE(now.pins, std::size(kPins));
  uint64_t h = 0xcbf29ce484222325;
  for (size_t i = 0; i < now.pins; i++)
    for (int shift = 0; shift < 64; shift += 8) h = (h ^ (kPins[i].hash >> shift & 0xff)) * 0x100000001b3;
  EXPECT_EQ(h, now.hash) << "the pins changed: raise kArithmetic, and add a line above";
}

TEST(PinnedBits, OnEveryVariantOfThisBuild) {
  const Variants variants = cpu_variants();
  for (auto& r : variants.refused) std::printf("not run: %s\n", r.c_str());
  ASSERT_GE(variants.usable.size(), 1u);
  const auto tokens = fixed_tokens();
  for (const std::string& variant : variants.usable) {
    int equal = 0;
    for (const Pin& pin : kPins) {
      EngineOptions o;
      o.device = "threads=1\nvariant=" + variant;
      o.run.cache_type = pin.cache, o.run.context = 128, o.run.logit_rows = 70;
      auto e = open_engine(golden_dir() + "/" + pin.model + ".gguf", o);
      ASSERT_TRUE(e) << e.error().message;
      const auto logits = e->all_logits(tokens);
      EXPECT_EQ(logits.size(), tokens.size() * 512);
      const uint64_t got = hash_of(logits);
      equal += got == pin.hash;
      EXPECT_EQ(got, pin.hash) << format("{}, {} cache, variant {}: 0x{:016x}, pinned is 0x{:016x}",
                                         pin.model, info(pin.cache).name, variant, got, pin.hash);
    }
    std::printf("%-12s %d of %zu hashes\n", variant.c_str(), equal, std::size(kPins));
  }
}

}  // namespace
}  // namespace gimbal::test
