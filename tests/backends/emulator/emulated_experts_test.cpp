// Mixtures of experts with tensors on devices of their own: the bits of one device for every rule, every byte
// where the plan says, and each op with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "calibration/importance_run.h"
#include "engine/engine.h"
#include "engine/options.h"
#include "engine/tensor_places.h"
#include "runtime/memory_check.h"
#include "runtime/stages.h"
#include "support/golden.h"
#include "support/placed.h"
#include "support/watched.h"

namespace gimbal::test {
namespace {

class Experts : public testing::Test {
 protected:
  std::unique_ptr<Device> cpu_ = open_one("cpu", 0, "threads=1"), gpu_ = open_one("emulator"),
                          second_ = open_one("emulator", 1);
  const std::vector<int32_t> tokens_ = any_tokens(20);

  static ModelSource model(const char* name) { return open_file(golden_dir() + "/" + name + ".gguf"); }
  static RunOptions options(std::vector<TensorRule> rules, int batch = 16) {
    RunOptions o;
    o.context = 128, o.batch = o.logit_rows = batch;
    o.tensor_rules = std::move(rules);
    return o;
  }
  TensorRule experts(const Device* d) const { return {kExpertTensors, d, "'cpu_moe'"}; }
  std::vector<float> run(const ModelSource& file, const std::vector<Placement>& where, const RunOptions& o,
                         size_t split = 0) {
    auto m = load_placed(file, where, o);
    if (m) return logits_of(**m, tokens_, split);
    ADD_FAILURE() << m.error().message;
    return {};
  }
  std::vector<float> whole(const ModelSource& file) {
    return run(file, {{cpu_.get(), configure(file)->layers, ""}}, options({}));
  }
};

std::vector<const char*> mixtures() {
  std::vector<const char*> all = {"arch/gpt-oss",      "more/arch/deepseek2", "more/arch/gemma4-moe",
                                  "more/arch/glm4moe", "more/arch/lfm2moe",   "more/arch/llama4"};
  if (whole_collection()) all.insert(all.end(), {"arch/mixtral", "arch/qwen2moe", "arch/qwen3moe"});
  return all;
}

TEST_F(Experts, OnTheCpuGiveTheBitsOfOneDevice) {
  for (const char* name : mixtures()) {
    const ModelSource file = model(name);
    const int n = configure(file)->layers;
    const auto want = whole(file);
    const std::vector<Placement> on_gpu = {{gpu_.get(), n, ""}};
    for (size_t split : {0, 1, 7})
      EXPECT_EQ(bits_differ(want, run(file, on_gpu, options({experts(cpu_.get())}), split)), "")
          << name << ", " << split << " tokens at a time";
    for (int batch : {1, 3})
      EXPECT_EQ(bits_differ(want, run(file, on_gpu, options({experts(cpu_.get())}, batch))), "") << name;
    // Those of the first layers; on another GPU; and where layers are divided, too.
    TensorRule first = experts(cpu_.get());
    first.layers = 1;
    EXPECT_EQ(bits_differ(want, run(file, on_gpu, options({first}))), "") << name;
    EXPECT_EQ(bits_differ(want, run(file, on_gpu, options({experts(second_.get())}))), "") << name;
    EXPECT_EQ(bits_differ(want, run(file, {{cpu_.get(), 1, ""}, {gpu_.get(), n - 1, ""}},
                                    options({experts(cpu_.get())}))),
              "")
        << name;
  }
}

TEST_F(Experts, AnyTensorsOnAnyDevicesGiveTheBitsOfOneDevice) {
  for (const char* name : {"arch/gpt-oss", "arch/llama-gqa", "arch/gemma3", "arch/bitnet-b158"}) {
    const ModelSource file = model(name);
    const int n = configure(file)->layers;
    const auto want = whole(file);
    for (const char* pattern :
         {"ffn_down", "attn_(q|k)\\.", "attn_output", "norm", "blk\\.1\\.", "token_embd"}) {
      if (std::string_view(pattern) == "token_embd" && !file.tensors().find("output.weight")) continue;
      const std::vector<TensorRule> rules = {{pattern, second_.get(), "asked for"},
                                             {"attn_v|ffn_up", cpu_.get(), "asked for, too"}};
      auto m = load_placed(file, {{gpu_.get(), n, ""}}, options(rules));
      if (!m) {
        ADD_FAILURE() << name << " " << pattern << ": " << m.error().message;
        continue;
      }
      EXPECT_EQ(bits_differ(want, logits_of(**m, tokens_)), "") << name << ", " << pattern;
    }
  }
}

TEST_F(Experts, ThePlanCountsEachByteWhereItIsTaken) {
  const auto host = Device::open(Watched<0>::of("cpu"), 0, "threads=1");
  Watch& on_cpu = Watched<0>::watches[Watched<0>::latest];
  const auto gpu = Device::open(Watched<1>::of("emulator"), 0);
  Watch& on_gpu = Watched<1>::watches[Watched<1>::latest];
  ASSERT_TRUE(host && gpu);
  const ModelSource file = model("arch/gpt-oss");
  const int n = configure(file)->layers;
  auto undivided = make_model_plan(file, **gpu, options({}));
  ASSERT_TRUE(undivided);
  on_cpu = {}, on_gpu = {};
  auto b = make_model_plan(file, **gpu, options({experts(host->get())}));
  ASSERT_TRUE(b) << b.error().message;
  ASSERT_EQ(b->stages.size(), 2u);
  const Stage &moved = b->stages[0], &rest = b->stages[1];
  EXPECT_EQ(moved.device, host->get());
  EXPECT_EQ(moved.why, "'cpu_moe'");
  EXPECT_FALSE(has_layers(moved));
  // gpt-oss has three matrices with a bias each.
  EXPECT_EQ(moved.moved_in, 6 * n);
  EXPECT_EQ(rest.moved_out, 6 * n);
  EXPECT_EQ(contents(moved), std::to_string(6 * n) + " tensors");
  const MemoryPlan there = moved.memory, here = rest.memory;
  EXPECT_EQ(there.cache, 0u);
  EXPECT_EQ(here.cache, undivided->last().memory.cache);
  // Exactly the experts are missing on the GPU, in its layout.
  uint64_t left = 0;
  const Program& p = undivided->last().buckets[0].program;
  for (uint16_t w : p.weights)
    if (p.info[w].name.find("_exps") != std::string::npos) left += align_up(p.values[w].bytes, kAlignment);
  EXPECT_GT(left, 0u);
  EXPECT_EQ(here.weights + left, undivided->last().memory.weights);

  const uint64_t before_loading = (*gpu)->describe().memory_free;
  auto m = Model::load(std::move(*b), file);
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(on_cpu.sum(), there.total());
  EXPECT_EQ(on_gpu.sum() + here.scratch, here.total());
  const uint64_t used = before_loading - (*gpu)->describe().memory_free;
  size_t programs = 0;
  for (const Bucket& bucket : (*m)->plan().stages[1].buckets) programs += bucket.parts.size();
  EXPECT_GE(used, here.total());
  EXPECT_LE(used, here.total() + 512 * (kSlots + 4 + programs));

  auto s = *Session::create(**m);
  const Session::Sink ignore = [](size_t, std::span<const float>) {};
  ASSERT_TRUE(s->advance(tokens_, Session::Wanted::Last, ignore));
  const Watch cpu_before = on_cpu, gpu_before = on_gpu;
  const int32_t token = 7;
  for (int i = 0; i < 10; i++) ASSERT_TRUE(s->advance(std::span(&token, 1), Session::Wanted::Last, ignore));
  EXPECT_EQ(on_cpu.taken.size(), kSlots) << "nothing is allocated after load()";
  EXPECT_EQ(on_gpu.taken.size(), kSlots);
  // A layer's experts get their rows and routes in one upload and give one value back.
  EXPECT_EQ(on_cpu.writes - cpu_before.writes, 10 * n);
  EXPECT_EQ(on_cpu.reads - cpu_before.reads, 10 * n);
  EXPECT_EQ(on_gpu.writes - gpu_before.writes, 10 * (n + 1)) << "and the step's own data";
  EXPECT_EQ(on_gpu.reads - gpu_before.reads, 10 * (2 * n + 1)) << "rows and routes, and the logits";
}

TEST_F(Experts, EachOpElsewhereHasItsReason) {
  const ModelSource file = model("arch/gpt-oss");
  TensorRule first = experts(cpu_.get());
  first.layers = 1, first.why = "'n_cpu_moe' 1";
  auto b = make_model_plan(file, *gpu_, options({first}));
  ASSERT_TRUE(b) << b.error().message;
  for (size_t bucket = 0; bucket < b->stages[0].buckets.size(); bucket++) {
    size_t products = 0;
    for (const Stage& stage : b->stages) {
      const Bucket& here = stage.buckets[bucket];
      ASSERT_EQ(here.rules.size(), here.program.ops.size());
      for (size_t i = 0; i < here.rules.size(); i++) {
        EXPECT_EQ(here.rules[i], stage.device == cpu_.get() ? 0 : -1)
            << here.program.output(here.program.ops[i]).name;
        products += stage.device == cpu_.get() && OpKind(here.program.ops[i].kind) == OpKind::ExpertMatMul;
        EXPECT_TRUE(stage.device == gpu_.get() || here.program.layer[i] == 0);
      }
    }
    EXPECT_EQ(products, 3u) << "gate, up and down of one layer";
  }
}

// Importance matrices are made of them (calibration/importance_run.h): each device quantizes for itself.
TEST_F(Experts, InputsOfProductsAreReadableBeforeQuantization) {
  size_t quantized = 0;
  for (const char* name : {"arch/gpt-oss", "more/arch/glm4moe"}) {  // the latter has a shared expert, too
    const ModelSource file = model(name);
    RunOptions o = options({experts(cpu_.get())});
    o.keep_inputs = true;
    const auto divided = make_model_plan(file, *gpu_, o);
    o.tensor_rules.clear();
    const auto whole = make_model_plan(file, *gpu_, o);
    ASSERT_TRUE(divided && whole);
    for (size_t bucket = 0; bucket < whole->stages[0].buckets.size(); bucket++) {
      size_t products = 0;
      for (const Stage& stage : divided->stages) {
        const Program& p = stage.buckets[bucket].program;
        for (const gimbal_op& op : p.ops) quantized += OpKind(op.kind) == OpKind::Quantize;
        for (const ProductInput& in : product_inputs(p)) {
          products++;
          EXPECT_EQ(DType(p.values[in.values].dtype), DType::F32) << p.info[in.values].name;
        }
      }
      EXPECT_EQ(products, product_inputs(whole->stages[0].buckets[bucket].program).size());
    }
  }
  EXPECT_GT(quantized, 0u) << "nothing was quantized: the test tests less than it says";
}

TEST_F(Experts, RulesThatCannotBeFollowedAreErrors) {
  const ModelSource file = model("arch/gpt-oss");
  auto refused = [&](const char* pattern) {
    auto b = make_model_plan(file, *gpu_, options({{pattern, cpu_.get(), "asked for"}}));
    EXPECT_FALSE(b) << pattern;
    return b ? Error{} : b.error();
  };
  const Error alone = refused("ffn_gate_exps\\.bias");
  EXPECT_EQ(alone.code, Code::Usage);
  EXPECT_NE(alone.message.find("'blk.0.ffn_gate_exps.bias' cannot be on another device than "
                               "'blk.0.ffn_gate_exps.weight'"),
            std::string::npos)
      << alone.message;
  const Error state = refused("attn_sinks");
  EXPECT_NE(state.message.find("keeps state, which is with the layer"), std::string::npos) << state.message;
  EXPECT_EQ(refused("^output\\.weight").code, Code::Unsupported);
  EXPECT_EQ(refused("attn_(q").code, Code::Usage);
}

// On a device too small for the model, the experts of as few layers as possible are on the CPU: then a token
// reads fewer bytes there than with whole layers.
TEST_F(Experts, AreMovedRatherThanWholeLayers) {
  const ModelSource file = model("more/arch/glm4moe");
  const int n = configure(file)->layers;
  auto of_first = [&](int layers) {
    TensorRule rule = experts(cpu_.get());
    rule.layers = layers;
    auto b = make_model_plan(file, *gpu_, options({rule}));
    EXPECT_TRUE(b) << b.error().message;
    return b->last().memory.total();
  };
  const auto want = whole(file);
  int moved = 0;
  for (int layers = 1; layers <= n; layers++) {
    const uint64_t memory = of_first(layers);
    if (memory == of_first(layers - 1)) continue;  // a layer without experts
    moved++;
    const auto small = open_one("emulator", 0, "memory=" + std::to_string(memory));
    auto b = place_layers(file, *small, *cpu_, kAsManyAsFit, options({}));
    ASSERT_TRUE(b) << b.error().message;
    ASSERT_EQ(b->options.tensor_rules.size(), 1u) << layers;
    EXPECT_EQ(b->options.tensor_rules[0].layers, layers);
    EXPECT_EQ(b->last().memory.total(), memory);
    EXPECT_EQ(b->last().layers, n);
    EXPECT_EQ(b->stages[0].why.find("the experts of "), 0u) << b->stages[0].why;
    EXPECT_NE(b->stages[0].why.find("in place of"), std::string::npos) << b->stages[0].why;
    auto without = place_layers(file, *small, *cpu_, kAsManyAsFit, options({}), false);
    ASSERT_TRUE(without) << without.error().message;
    EXPECT_TRUE(without->options.tensor_rules.empty());
    EXPECT_LT(without->last().layers, n);
    if (layers < n) continue;
    // 2 % and some programs more: what the device itself keeps.
    const auto enough = open_one("emulator", 0, "memory=" + std::to_string(memory + memory / 20));
    auto again = place_layers(file, *enough, *cpu_, kAsManyAsFit, options({}));
    ASSERT_TRUE(again);
    auto m = Model::load(std::move(*again), file);
    ASSERT_TRUE(m) << m.error().message;
    EXPECT_EQ(bits_differ(want, logits_of(**m, tokens_)), "");
  }
  EXPECT_GT(moved, 0);
}

// From the settings to the bits, as programs have it.
class OverridesOfTheEngine : public testing::Test {
 protected:
  Registry registry_{BackendPlaces{}};
  const std::string path_ = golden_dir() + "/arch/gpt-oss.gguf";
  std::vector<std::string> told_;

  Result<LoadedModelPtr> load(const DeviceSettings& d, const std::string& path) {
    ModelOptions m;
    m.context = 128, m.batch = 16;
    auto options = engine_options(d, m);
    if (!options) return options.error();
    engine_ = std::make_unique<gimbal::Engine>(registry_, std::move(*options), [this](const Event& e) {
      if (const auto* u = std::get_if<event::Unfulfilled>(&e))
        told_.push_back(std::string(u->field) + ": " + u->message);
      if (const auto* f = std::get_if<Fallback>(&e)) told_.push_back(f->what);
      return true;
    });
    auto file = open_model_file(path);
    if (!file) return file.error();
    return engine_->load(*file);
  }
  static DeviceSettings on_emulator() {
    DeviceSettings d;
    d.backend = "emulator", d.device = 0, d.allow_software_devices = true, d.verify = Verify::Never;
    return d;
  }
  std::unique_ptr<gimbal::Engine> engine_;
};

TEST_F(OverridesOfTheEngine, PlaceTensorsAndSayWhy) {
  DeviceSettings d = on_emulator();
  const auto alone = load(d, path_);
  ASSERT_TRUE(alone) << alone.error().message;
  const auto tokens = any_tokens(20);
  const auto want = logits_of(*(*alone)->model, tokens);
  d.n_cpu_moe = 1, d.override_tensor = {"attn_output=EMULATOR1,attn_q=cpu"};
  for (Verify verify : {Verify::Never, Verify::Always}) {
    d.verify = verify;
    const auto loaded = load(d, path_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const ModelPlan& plan = (*loaded)->model->plan();
    ASSERT_EQ(plan.stages.size(), 3u);
    EXPECT_EQ(bits_differ(want, logits_of(*(*loaded)->model, tokens)), "");
    std::map<std::string, std::pair<std::string, std::string>> places;
    for (const TensorPlace& t : tensor_places(plan)) places[t.name] = {t.device, t.why};
    EXPECT_EQ(places["blk.0.ffn_up_exps.weight"],
              (std::pair<std::string, std::string>("cpu:0", "'n_cpu_moe' 1")));
    EXPECT_EQ(places["blk.1.ffn_up_exps.weight"].first, "emulator:0");
    EXPECT_EQ(
        places["blk.1.attn_output.weight"],
        (std::pair<std::string, std::string>("emulator:1", "'override_tensor' 'attn_output=EMULATOR1'")));
    EXPECT_EQ(places["blk.0.attn_q.bias"].first, "cpu:0") << "with its matrix";
    EXPECT_EQ(places["blk.0.attn_k.weight"].first, "emulator:0");
  }
  EXPECT_TRUE(told_.empty()) << told_[0];
}

TEST_F(OverridesOfTheEngine, AreNeverLeftOutInSilence) {
  DeviceSettings d = on_emulator();
  d.override_tensor = {"ffn_upp_exps=cpu"};
  auto no = load(d, path_);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::Usage);
  EXPECT_NE(no.error().remedy.find("blk.0."), std::string::npos) << no.error().remedy;
  d.override_tensor = {"ffn_up_exps=nothing:3"};
  no = load(d, path_);
  ASSERT_FALSE(no);
  EXPECT_NE(no.error().remedy.find("cpu:0"), std::string::npos) << no.error().remedy;
  EXPECT_NE(no.error().remedy.find("emulator:1"), std::string::npos) << no.error().remedy;
  // A model without experts: a note, or an error under strict.
  d.override_tensor = {}, d.cpu_moe = true;
  const std::string dense = golden_dir() + "/stories/stories260K-q8_0.gguf";
  EXPECT_TRUE(load(d, dense));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0], "cpu_moe: has no effect: the model has no experts there");
  d.strict = true;
  no = load(d, dense);
  ASSERT_FALSE(no);
  EXPECT_STREQ(no.error().field, "cpu_moe");
}

// The first rule decides; a pattern of another program's dialect means the same.
TEST_F(Experts, TheFirstRuleDecides) {
  const ModelSource file = model("arch/gpt-oss");
  const std::vector<TensorRule> rules = {{"blk\\.\\d+\\.ffn_(?:gate)_exps", cpu_.get(), ""},
                                         {"ffn_gate|attn_q", second_.get(), ""}};
  const auto of = rules_of_tensors(file.tensors(), rules);
  ASSERT_TRUE(of) << of.error().message;
  auto rule = [&](const char* name) { return (*of)[file.tensors().find(name)->index]; };
  EXPECT_EQ(rule("blk.0.ffn_gate_exps.weight"), 0);
  EXPECT_EQ(rule("blk.0.ffn_gate_inp.weight"), 1);
  EXPECT_EQ(rule("blk.1.attn_q.weight"), 1);
  EXPECT_EQ(rule("blk.1.attn_k.weight"), -1);
}

}  // namespace
}  // namespace gimbal::test
