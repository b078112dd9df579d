// The generations of libllama's interface: sizes and places as the releases' own headers have them, and
// libraries that are of none of them.
#include "llama/generations.h"

#include <gtest/gtest.h>

#include <set>

namespace gimbal::llama {
namespace {

struct KnownLayout {
  const char* release;
  int model, context;                        // sizeof
  int gpu_layers, vocab_only;                // offsetof in llama_model_params
  int threads, cb_eval, type_k, embeddings;  // offsetof in llama_context_params
};
// Printed by g++ from include/llama.h of these releases, as node-llama-cpp carries them
// (tests/llama/headers.py).
constexpr KnownLayout kHeaders[] = {
    {"b3889", 64, 120, 0, 56, 16, 72, 88, 97},     {"b4435", 72, 120, 8, 64, 16, 72, 88, 97},
    {"b4753", 64, 120, 8, 56, 16, 72, 88, 97},     {"b5640", 72, 120, 16, 64, 16, 72, 88, 112},
    {"b6301", 72, 120, 16, 64, 16, 72, 88, 112},   {"b6673", 72, 120, 16, 64, 16, 72, 88, 112},
    {"b8390", 72, 136, 16, 64, 16, 72, 88, 112},   {"b10361", 72, 160, 16, 64, 28, 88, 104, 128},
    {"v0.5.0", 80, 160, 16, 72, 28, 88, 104, 128},
};

TEST(LlamaGenerations, HaveTheLayoutOfTheReleasesHeaders) {
  ASSERT_EQ(generations().size(), std::size(kHeaders));
  for (size_t i = 0; i < std::size(kHeaders); i++) {
    const KnownLayout& k = kHeaders[i];
    const Generation& g = generations()[i];
    EXPECT_STREQ(g.release, k.release);
    EXPECT_EQ(g.model.size, k.model) << k.release;
    EXPECT_EQ(g.context.size, k.context) << k.release;
    EXPECT_EQ(g.model.at[size_t(ModelField::n_gpu_layers)], k.gpu_layers) << k.release;
    EXPECT_EQ(g.model.at[size_t(ModelField::vocab_only)], k.vocab_only) << k.release;
    EXPECT_EQ(g.context.at[size_t(ContextField::n_threads)], k.threads) << k.release;
    EXPECT_EQ(g.context.at[size_t(ContextField::cb_eval)], k.cb_eval) << k.release;
    EXPECT_EQ(g.context.at[size_t(ContextField::type_k)], k.type_k) << k.release;
    EXPECT_EQ(g.context.at[size_t(ContextField::embeddings)], k.embeddings) << k.release;
  }
}

// Structs that functions return by value: measured with padding inside and behind.
struct Padded {
  int32_t a;
  void* b;
  bool c;
};
AnyStruct (*as_any(Padded (*f)()))() { return reinterpret_cast<AnyStruct (*)()>(reinterpret_cast<void*>(f)); }
Padded padded() { return {0x5a5a5a5a, nullptr, true}; }

TEST(LlamaGenerations, MeasuresAStructThatAFunctionReturns) {
  const MeasuredStruct m = measure(as_any(padded));
  EXPECT_EQ(m.size, int(sizeof(Padded)));
  EXPECT_TRUE(m.written[0]);   // equal to one of the patterns
  EXPECT_TRUE(m.written[16]);  // the last field
  EXPECT_EQ(read_le<int32_t>(m.value.bytes.data()), 0x5a5a5a5a);
}

// A struct of a generation with the defaults of its fields.
MeasuredStruct made(int size) {
  MeasuredStruct m;
  m.size = size, m.value.bytes.fill(std::byte(0)), m.written.fill(true);
  return m;
}
MeasuredStruct context_of(const Generation& g) {
  MeasuredStruct m = made(g.context.size);
  set(m.value, g.context, ContextField::n_ctx, 512), set(m.value, g.context, ContextField::n_batch, 2048);
  set(m.value, g.context, ContextField::n_ubatch, 512), set(m.value, g.context, ContextField::n_seq_max, 1);
  set(m.value, g.context, ContextField::type_k, 1), set(m.value, g.context, ContextField::type_v, 1);
  set(m.value, g.context, ContextField::yarn_ext_factor, -1.0f);
  return m;
}

TEST(LlamaGenerations, AreFoundBySizesFunctionsAndDefaults) {
  for (const Generation& g : generations()) {
    const std::set<std::string> functions{g.exports};
    auto found =
        identify(made(g.model.size), context_of(g), [&](const char* f) { return functions.contains(f); });
    ASSERT_TRUE(bool(found)) << g.release << ": " << found.error().message;
    EXPECT_EQ((*found)->model.size, g.model.size);
    EXPECT_EQ((*found)->context.at, g.context.at) << g.release << " " << (*found)->release;
  }
}

TEST(LlamaGenerations, OthersAreRefusedWithAllThatDiffers) {
  const auto all = [](const char*) { return true; };
  auto sizes = identify(made(88), made(176), all);
  ASSERT_FALSE(bool(sizes));
  EXPECT_EQ(sizes.error().code, Code::Unsupported);
  EXPECT_NE(
      sizes.error().message.find("found llama_model_params of 88 bytes and llama_context_params of 176"),
      std::string::npos)
      << sizes.error().message;
  EXPECT_NE(sizes.error().message.find("b8390 (72 and 136)"), std::string::npos);
  EXPECT_FALSE(sizes.error().remedy.empty());

  const Generation& g = generations()[6];
  MeasuredStruct other = context_of(g);
  set(other.value, g.context, ContextField::n_ctx, 4096);
  other.written[size_t(g.context.at[size_t(ContextField::n_samplers)])] = false;
  auto defaults = identify(made(g.model.size), other, [](const char*) { return false; });
  ASSERT_FALSE(bool(defaults));
  for (const char* part :
       {"n_ctx is 0x1000, not 0x200", "1 fields have no default", "it has no function llama_set_sampler"})
    EXPECT_NE(defaults.error().message.find(part), std::string::npos) << part << "\n"
                                                                      << defaults.error().message;
}

}  // namespace
}  // namespace gimbal::llama
