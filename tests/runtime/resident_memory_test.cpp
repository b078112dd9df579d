// Compares the memory estimate and the plan with the system's count of this process: its resident memory that
// no file backs.
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>

#include "runtime/estimate.h"
#include "runtime/memory_check.h"
#include "support/placed.h"
#include "support/tiny_llama.h"

namespace gimbal::test {
namespace {

double resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) * 1024;
  ADD_FAILURE() << "/proc/self/status has no RssAnon";
  return 0;
}

// One layer, 512 wide; 85 MB of f32, most of it in the table of the vocabulary.
constexpr uint32_t kWidth = 512, kWide = 2048, kHeads = 8, kVocabulary = 32768, kContext = 64;

std::string wide_llama() {
  TinyLlama m;
  m.u32("embedding_length", kWidth), m.u32("feed_forward_length", kWide);
  m.u32("attention.head_count", kHeads), m.u32("attention.head_count_kv", kHeads);
  m.weight = [](uint64_t i) { return float(int(i % 7) - 3) / 64; };
  m.tensors["token_embd.weight"].dims = {kWidth, kVocabulary};
  for (const char* norm : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"})
    m.tensors[std::string(norm) + ".weight"].dims = {kWidth};
  for (const char* square : {"attn_q", "attn_k", "attn_v", "attn_output"})
    m.tensors[std::string("blk.0.") + square + ".weight"].dims = {kWidth, kWidth};
  for (const char* up : {"ffn_gate", "ffn_up"})
    m.tensors[std::string("blk.0.") + up + ".weight"].dims = {kWidth, kWide};
  m.tensors["blk.0.ffn_down.weight"].dims = {kWide, kWidth};
  const std::string path = testing::TempDir() + "wide-llama.gguf";
  std::ofstream(path, std::ios::binary) << m.build();
  return path;
}

TEST(ResidentMemory, IsWhatIsPlannedAndEstimated) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is resident, too";
#endif
  const std::string path = wide_llama();
  const ModelSource file = open_file(path);
  const auto cpu = open_one("cpu", 0, "threads=1");
  RunOptions o;
  o.context = kContext, o.batch = 16, o.logit_rows = 1;
  const auto plan = [&] { return make_model_plan(file, *cpu, o); };
  const auto first = plan();
  ASSERT_TRUE(first) << first.error().message;
  const double planned = double(memory_uses(*first).back().sum.total());
  ModelDimensions d;
  d.layers = 1, d.embedding = kWidth, d.heads = d.kv_heads = kHeads, d.head_dim = kWidth / kHeads;
  d.ffn = kWide, d.vocabulary = kVocabulary, d.tied_output = true, d.weights = DType::F32;
  d.context = kContext, d.batch = 16;
  EXPECT_NEAR(double(estimate_inference_memory(d).total()), planned, 0.03 * planned);

  // The first time, this process also takes what stays with it: threads, tables, pages of its libraries.
  for (const bool counts : {false, true}) {
    malloc_trim(0);
    const double before = resident_bytes();
    auto model = Model::load(*plan(), file);
    ASSERT_TRUE(model) << model.error().message;
    {
      auto s = Session::create(**model);
      ASSERT_TRUE(s) << s.error().message;
      auto ok = (*s)->advance(any_tokens(kContext, kVocabulary), Session::Wanted::Last,
                              [](size_t, std::span<const float>) {});
      ASSERT_TRUE(ok) << ok.error().message;
      malloc_trim(0);
      const double taken = resident_bytes() - before;
      std::printf("planned %.0f bytes, resident %.0f: %+.2f %%\n", planned, taken,
                  100 * (taken / planned - 1));
      if (counts) { EXPECT_NEAR(taken, planned, 0.03 * planned); }
    }
    model->reset();
    malloc_trim(0);
    if (counts) { EXPECT_LT(resident_bytes() - before, 0.03 * planned) << "it goes with the model"; }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace gimbal::test
