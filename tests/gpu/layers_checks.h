// A model's layers over a GPU and the CPU, and over two GPUs: the CPU's bits. Each check
// is a function of the backend and its options.
#pragma once
#include <cstdio>

#include "support/golden.h"
#include "support/moving.h"
#include "support/watched.h"

namespace gimbal::test {

// Devices 0 and 1 of the backend; where there is only one, it is opened twice, with memory of its own each.
inline void check_split_points(const std::string& backend, const std::string& options) {
  int devices = 0;
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (backend == (*e)()->name) devices = (*e)()->device_count();
  std::printf("%s: %d device%s\n", backend.c_str(), devices, devices == 1 ? ", opened twice" : "s");
  const auto cpu = open_one("cpu", 0, "threads=1"), first = open_one(backend, 0, options),
             second = open_one(backend, devices > 1 ? 1 : 0, options);
  const auto tokens = any_tokens(40);
  RunOptions o;
  o.context = 128, o.batch = o.logit_rows = 32;
  for (const char* name : {"stories/stories260K-q8_0", "arch/llama-mha-tied"}) {
    const ModelSource file = open_file(golden_dir() + "/" + name + ".gguf");
    const int n = configure(file)->layers;
    auto run = [&](const std::vector<Placement>& where) {
      auto m = load_placed(file, where, o);
      if (m) return logits_of(**m, tokens, 33);
      ADD_FAILURE() << m.error().message;
      return std::vector<float>();
    };
    const auto want = run({{cpu.get(), n, ""}});
    for (int k = 0; k <= n; k += n > 3 ? 3 : 1) {
      EXPECT_EQ(bits_differ(want, run({{cpu.get(), n - k, ""}, {first.get(), k, ""}})), "")
          << name << ", the last " << k << " on " << backend;
      EXPECT_EQ(bits_differ(want, run({{first.get(), n - k, ""}, {second.get(), k, ""}})), "")
          << name << ", the last " << k << " on the second " << backend;
    }
  }
}

// A conversation that moves from the CPU to the device, to both, and back.
inline void check_moving(const std::string& backend, const std::string& options) {
  const auto cpu = open_one("cpu", 0, "threads=1"), gpu = open_one(backend, 0, options);
  const ModelSource file = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  const int n = configure(file)->layers;
  RunOptions o;
  o.context = 100, o.batch = 16;
  auto home = load_on(*cpu, file, o), away = load_on(*gpu, file, o);
  auto both = load_placed(file, {{cpu.get(), 2, ""}, {gpu.get(), n - 2, ""}}, o);
  ASSERT_TRUE(both) << both.error().message;
  Model* way[] = {home.get(), away.get(), both->get()};
  check_moves(file, way, 8);
}

// Experts on the CPU, and attention there with the experts on the device: the CPU's bits.
inline void check_experts(const std::string& backend, const std::string& options) {
  const auto cpu = open_one("cpu", 0, "threads=1"), gpu = open_one(backend, 0, options);
  const auto tokens = any_tokens(40);
  for (const char* name : {"arch/gpt-oss", "more/arch/glm4moe"}) {
    const ModelSource file = open_file(golden_dir() + "/" + name + ".gguf");
    auto run = [&](const Device& layers, const std::vector<TensorRule>& rules) {
      RunOptions o;
      o.context = 128, o.batch = o.logit_rows = 32;
      o.tensor_rules = rules;
      auto m = load_placed(file, {{&layers, configure(file)->layers, ""}}, o);
      if (m) return logits_of(**m, tokens, 33);
      ADD_FAILURE() << m.error().message;
      return std::vector<float>();
    };
    const auto want = run(*cpu, {});
    EXPECT_EQ(bits_differ(want, run(*gpu, {{kExpertTensors, cpu.get(), ""}})), "") << name;
    EXPECT_EQ(bits_differ(want, run(*gpu, {{"attn", cpu.get(), ""}})), "") << name;
    EXPECT_EQ(bits_differ(want, run(*cpu, {{kExpertTensors, gpu.get(), ""}})), "") << name;
  }
}

// Layer by layer, the bytes that live on the device are those of the plan, and of the layers that it says to
// have there.
inline void check_bytes(const std::string& backend, const std::string& options) {
  const auto cpu = open_one("cpu", 0, "threads=1");
  auto gpu = Device::open(Watched<2>::of(backend), 0, options);
  ASSERT_TRUE(gpu) << gpu.error().message;
  Watch& on_gpu = Watched<2>::watches[Watched<2>::latest];
  const ModelSource file = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  const int n = configure(file)->layers;
  RunOptions o;
  o.context = 128, o.batch = o.logit_rows = 16;
  uint64_t weights_before = 0;
  for (int k = 1; k < n; k++) {  // without the embedding and the head, so that layers alone differ
    on_gpu = {};
    auto plan = make_model_plan(
        file, std::vector<Placement>{{cpu.get(), 0, ""}, {gpu->get(), k, ""}, {cpu.get(), n - k, ""}}, o);
    ASSERT_TRUE(plan) << plan.error().message;
    const Stage& there = plan->stages[1];
    EXPECT_EQ(contents(there), k == 1 ? "layer 0" : "layers 0 to " + std::to_string(k - 1));
    const MemoryPlan memory = there.memory;
    auto model = Model::load(std::move(*plan), file);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(on_gpu.sum() + memory.scratch, memory.total()) << k << " layers";
    EXPECT_EQ(on_gpu.taken.size(), kSlots);
    if (k > 2) {
      EXPECT_NEAR(double(memory.weights - weights_before), double(weights_before) / (k - 1), 4096);
    }
    weights_before = memory.weights;
    const int taken = int(on_gpu.taken.size());
    ASSERT_FALSE(logits_of(**model, any_tokens(20)).empty());
    EXPECT_EQ(int(on_gpu.taken.size()), taken) << "a step allocates nothing";
  }
}

}  // namespace gimbal::test
