// A model's layers over several devices: the CPU and emulated GPUs. The same bits as on one device for every
// way to cut, and every byte where the plan says.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "runtime/memory_check.h"
#include "support/golden.h"
#include "support/placed.h"
#include "support/watched.h"

namespace gimbal::test {
namespace {

std::string model_path(const char* name) { return golden_dir() + "/" + name + ".gguf"; }

class Layers : public testing::Test {
 protected:
  std::unique_ptr<Device> cpu_ = open_one("cpu", 0, "threads=1"), gpu_ = open_one("emulator"),
                          second_ = open_one("emulator", 1);
  const std::vector<int32_t> tokens_ = any_tokens(20);

  static RunOptions options(DType cache = DType::F16, int batch = 16) {
    RunOptions o;
    o.context = 128, o.batch = o.logit_rows = batch, o.cache_type = cache;
    return o;
  }
  std::vector<float> run(const ModelSource& file, const std::vector<Placement>& where, const RunOptions& o,
                         size_t split = 0) {
    auto m = load_placed(file, where, o);
    if (m) return logits_of(**m, tokens_, split);
    ADD_FAILURE() << m.error().message;
    return {};
  }
  static int layers_of(const ModelSource& file) { return configure(file)->layers; }
};

TEST_F(Layers, EverySplitPointGivesTheBitsOfOneDevice) {
  for (const char* name : {"stories/stories260K-q8_0", "quant/q-q6_k", "arch/qwen2", "arch/llama-mha-tied",
                           "arch/bitnet-b158-i2s"}) {
    const ModelSource file = open_file(model_path(name));
    const int n = layers_of(file);
    const auto want = run(file, {{cpu_.get(), n, ""}}, options());
    ASSERT_FALSE(want.empty());
    for (int k = 0; k <= n; k++) {
      EXPECT_EQ(bits_differ(want, run(file, {{cpu_.get(), n - k, ""}, {gpu_.get(), k, ""}}, options())), "")
          << name << ", the last " << k << " on the emulator";
      EXPECT_EQ(bits_differ(want, run(file, {{gpu_.get(), k, ""}, {cpu_.get(), n - k, ""}}, options())), "")
          << name << ", the first " << k << " on the emulator";
    }
    const int half = n / 2;
    EXPECT_EQ(
        bits_differ(want, run(file, {{gpu_.get(), half, ""}, {second_.get(), n - half, ""}}, options())), "")
        << name << ", two emulators";
    // Three parts, one device twice, and one that has nothing but the head.
    EXPECT_EQ(
        bits_differ(
            want,
            run(file,
                {{cpu_.get(), 0, ""}, {gpu_.get(), 1, ""}, {cpu_.get(), n - 1, ""}, {second_.get(), 0, ""}},
                options())),
        "")
        << name << ", four parts";
    std::printf("%s: %d layers, every split\n", name, n);
  }
}

TEST_F(Layers, EveryCacheBatchAndSplitOfThePrompt) {
  const ModelSource file = open_file(model_path("arch/llama31-ropefreqs"));
  const int n = layers_of(file);
  for (DType cache : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0,
                      DType::IQ4_NL}) {
    const auto want = run(file, {{cpu_.get(), n, ""}}, options(cache));  // some of them rotated
    const std::vector<Placement> where = {{cpu_.get(), n - 1, ""}, {gpu_.get(), 1, ""}};
    EXPECT_EQ(bits_differ(want, run(file, where, options(cache))), "") << info(cache).name;
    EXPECT_EQ(bits_differ(want, run(file, where, options(cache), 1)), "") << info(cache).name;
  }
  const auto want = run(file, {{cpu_.get(), n, ""}}, options());
  const std::vector<Placement> where = {{gpu_.get(), 1, ""}, {cpu_.get(), n - 1, ""}};
  for (auto [batch, split] : {std::pair(1, 0), {3, 0}, {20, 7}, {16, 19}})
    EXPECT_EQ(bits_differ(want, run(file, where, options(DType::F16, batch), size_t(split))), "")
        << "batch " << batch << ", split " << split;
}

TEST_F(Layers, ConversationsDoNotMeet) {
  const ModelSource file = open_file(model_path("stories/stories260K-q8_0"));
  const int n = layers_of(file);
  RunOptions o = options();
  o.sequences = 3;
  auto alone = *load_placed(file, {{cpu_.get(), n, ""}}, o);
  auto split = *load_placed(file, {{cpu_.get(), 2, ""}, {gpu_.get(), n - 2, ""}}, o);
  auto tell = [&](Model& m) {  // in turns of different lengths
    std::vector<std::unique_ptr<Session>> s;
    for (int i = 0; i < 3; i++) s.push_back(*Session::create(m));
    std::vector<float> all;
    std::mt19937 r(9);
    for (int turn = 0; turn < 9; turn++) {
      std::vector<int32_t> t(1 + r() % 12);
      for (int32_t& id : t) id = int32_t(r() % 512);
      auto ok = s[r() % 3]->advance(t, Session::Wanted::Last, [&](size_t, std::span<const float> row) {
        all.insert(all.end(), row.begin(), row.end());
      });
      EXPECT_TRUE(ok);
      if (turn == 5) s[1]->rewind(s[1]->position() / 2);
    }
    return all;
  };
  EXPECT_EQ(bits_differ(tell(*alone), tell(*split)), "");
}

TEST_F(Layers, ThePlanIsWhatIsTakenOnEachDeviceAndAStepTakesNothing) {
  const auto host = Device::open(Watched<0>::of("cpu"), 0, "threads=1");
  Watch& on_cpu = Watched<0>::watches[Watched<0>::latest];
  const auto gpu = Device::open(Watched<1>::of("emulator"), 0);
  Watch& on_gpu = Watched<1>::watches[Watched<1>::latest];
  ASSERT_TRUE(host && gpu);
  const ModelSource file = open_file(model_path("stories/stories260K-q8_0"));
  const int n = layers_of(file);
  for (int k : {0, 2, n}) {
    on_cpu = {}, on_gpu = {};
    auto b = make_model_plan(file, std::vector<Placement>{{host->get(), n - k, ""}, {gpu->get(), k, ""}},
                             options());
    ASSERT_TRUE(b) << b.error().message;
    EXPECT_TRUE(on_cpu.taken.empty() && on_gpu.taken.empty()) << "planning takes nothing";
    const MemoryPlan first = b->stages[0].memory, second = b->stages[1].memory;
    const uint64_t before_loading = (*gpu)->describe().memory_free;
    auto m = Model::load(std::move(*b), file);
    ASSERT_TRUE(m) << m.error().message;
    EXPECT_EQ(on_cpu.sum(), first.total());
    // By the device's own count, which knows what programs take besides; it rounds each allocation up.
    const uint64_t used = before_loading - (*gpu)->describe().memory_free;
    EXPECT_GE(used, second.total());
    EXPECT_LE(used, second.total() + 512 * (kSlots + 4));
    EXPECT_GT(second.scratch, 512 * (kSlots + 4)) << "too little to be seen in this comparison";
    EXPECT_EQ(on_gpu.sum() + second.scratch, second.total());
    EXPECT_EQ(on_cpu.taken.size(), kSlots);
    EXPECT_EQ(on_gpu.taken.size(), kSlots);
    // A row of 64 floats for each of 16 rows crosses once: out of one, and into the other.
    EXPECT_EQ(first.transfer, 64u * 4 * 16);
    EXPECT_EQ(second.transfer, 64u * 4 * 16);
    if (k == 0) { EXPECT_EQ(second.cache, 0u) << "no layers, no cache"; }

    auto s = *Session::create(**m);
    const Session::Sink ignore = [](size_t, std::span<const float>) {};
    ASSERT_TRUE(s->advance(tokens_, Session::Wanted::Last, ignore));
    const Watch cpu_before = on_cpu, gpu_before = on_gpu;
    const int32_t token = 7;
    for (int i = 0; i < 10; i++) ASSERT_TRUE(s->advance(std::span(&token, 1), Session::Wanted::Last, ignore));
    EXPECT_EQ(on_cpu.taken.size(), kSlots) << "nothing is allocated after load()";
    EXPECT_EQ(on_gpu.taken.size(), kSlots);
    for (const auto& [now, before] : {std::pair(&on_cpu, &cpu_before), {&on_gpu, &gpu_before}}) {
      EXPECT_EQ(now->writes - before->writes, 10) << "one upload a token";
      EXPECT_EQ(now->reads - before->reads, 10) << "one download a token";
    }
  }
}

TEST_F(Layers, WhatIsPlannedIsEnough) {
  // A device of just the planned size, and 2 % for what the device itself keeps, holds its part.
  const ModelSource file = open_file(model_path("stories/stories260K-q8_0"));
  const int n = layers_of(file);
  auto planned =
      make_model_plan(file, std::vector<Placement>{{cpu_.get(), n - 3, ""}, {gpu_.get(), 3, ""}}, options());
  ASSERT_TRUE(planned);
  const uint64_t bytes = planned->last().memory.total();
  const auto just = open_one("emulator", 0, "memory=" + std::to_string(bytes + bytes / 50));
  const std::vector<Placement> where = {{cpu_.get(), n - 3, ""}, {just.get(), 3, ""}};
  EXPECT_EQ(bits_differ(run(file, {{cpu_.get(), n, ""}}, options()), run(file, where, options())), "");
  const auto less = open_one("emulator", 0, "memory=" + std::to_string(bytes - 1));
  auto no = load_placed(file, {{cpu_.get(), n - 3, ""}, {less.get(), 3, ""}}, options());
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
}

TEST_F(Layers, RefusesPlacesThatDoNotAddUp) {
  const ModelSource file = open_file(model_path("stories/stories260K-q8_0"));
  const int n = layers_of(file);
  for (const std::vector<Placement>& where :
       std::vector<std::vector<Placement>>{{},
                                           {{cpu_.get(), n - 1, ""}},
                                           {{cpu_.get(), n, ""}, {gpu_.get(), 1, ""}},
                                           {{cpu_.get(), n + 1, ""}, {gpu_.get(), -1, ""}}}) {
    auto b = make_model_plan(file, where, options());
    ASSERT_FALSE(b);
    EXPECT_EQ(b.error().code, Code::Usage) << b.error().message;
  }
}

}  // namespace
}  // namespace gimbal::test
