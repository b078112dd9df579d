// Plans, splits and kernels of the public library, beside what is loaded and what runs.
#include <gimbal/engine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/golden.h"

namespace {

using namespace gimbal;

Options on_cpu() {
  Options o;
  o.backend = "cpu", o.threads = 1, o.verify = Verify::Never;
  return o;
}

TEST(LibraryPlan, IsWhatIsLoaded) {
  Options o = on_cpu();
  o.backend = "auto", o.split = {{"cpu", 2}, {"cpu", -1}};
  ModelOptions m;
  m.context = 200, m.sequences = 3, m.cache_type = "bf16";
  Engine engine(o);
  auto plan = engine.plan("default", m);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->layers, 5);
  EXPECT_EQ(plan->context, 200);
  EXPECT_EQ(plan->sequences, 3);
  EXPECT_EQ(plan->batch, 256);
  ModelOptions few = m;
  few.batch = 48;
  EXPECT_EQ(engine.plan("default", few)->batch, 48);
  EXPECT_EQ(plan->cache_type, "bf16");
  EXPECT_TRUE(plan->fits) << plan->misfit.message;
  ASSERT_EQ(plan->placement.size(), 2u);
  EXPECT_EQ(plan->placement[0].layers, 2);
  EXPECT_TRUE(plan->placement[0].embedding);
  EXPECT_EQ(plan->placement[1].first_layer, 2);
  EXPECT_TRUE(plan->placement[1].head);
  ASSERT_GE(plan->memory.size(), 2u);
  EXPECT_EQ(plan->memory.front().device, "cpu:0");
  EXPECT_EQ(plan->memory.back().device, "") << "the host's";
  for (const PlannedMemory& p : plan->memory) {
    EXPECT_LE(p.weights + p.cache + p.activations + p.step + p.output + p.scratch + p.sessions, p.total);
    EXPECT_LE(p.total, p.free);
  }
  EXPECT_GT(plan->memory[0].weights, 0u);
  m.sequences = 6;
  EXPECT_GT(engine.plan("default", m)->memory[0].cache, plan->memory[0].cache);

  auto model = engine.load("default", m);
  ASSERT_TRUE(model) << model.error().message;
  const auto placed = model->placement();
  ASSERT_EQ(placed.size(), plan->placement.size());
  for (size_t i = 0; i < placed.size(); i++) {
    EXPECT_EQ(placed[i].device, plan->placement[i].device);
    EXPECT_EQ(placed[i].first_layer, plan->placement[i].first_layer);
    EXPECT_EQ(placed[i].layers, plan->placement[i].layers);
    EXPECT_EQ(placed[i].why, plan->placement[i].why);
  }
  // A split changes no text.
  TextOptions greedy;
  greedy.greedy = true, greedy.max_tokens = 12;
  auto split = model->new_sequence()->generate("Once upon a time", greedy);
  auto whole = Engine(on_cpu()).load("default", m)->new_sequence()->generate("Once upon a time", greedy);
  ASSERT_TRUE(split && whole);
  EXPECT_EQ(split->text, whole->text);
}

TEST(LibraryPlan, SaysWhatDoesNotFit) {
  ModelOptions m;
  m.context = 1 << 20, m.sequences = 256, m.cache_type = "f32";
  auto plan = Engine(on_cpu()).plan("default", m);
  ASSERT_TRUE(plan) << plan.error().message;
  const bool fits = std::all_of(plan->memory.begin(), plan->memory.end(),
                                [](const PlannedMemory& p) { return p.total <= p.free; });
  EXPECT_EQ(plan->fits, fits);
  if (fits) return;  // a machine with hundreds of gigabytes
  EXPECT_EQ(plan->misfit.code, Code::OutOfMemory);
  EXPECT_FALSE(plan->misfit.changes.empty()) << "what would help";
}

TEST(LibraryPlan, CountsTheDraftModel) {
  ModelOptions m;
  m.context = 128, m.draft = "default";
  auto plan = Engine(on_cpu()).plan("default", m);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_NE(plan->draft_model, "");
  ASSERT_FALSE(plan->draft_memory.empty());
  EXPECT_GT(plan->draft_memory[0].weights, 0u);
  m.draft = "ngram";
  EXPECT_TRUE(Engine(on_cpu()).plan("default", m)->draft_memory.empty());
}

TEST(LibraryPlan, SettingsAreChecked) {
  Options o = on_cpu();
  o.backend = "auto", o.split = {{"cpu", 2}, {"cpu", 1}};
  EXPECT_EQ(Engine(o).plan("default").error().code, Code::Usage) << "of five layers";
  o.split = {{"nowhere at all", 5}};
  EXPECT_EQ(Engine(o).plan("default").error().field, "split");
  o = on_cpu();
  o.threads = 0;
  EXPECT_EQ(Engine(o).plan("default").error().field, "threads");
  ModelOptions m;
  m.cache_type = "q9";
  EXPECT_EQ(Engine(on_cpu()).plan("default", m).error().field, "cache_type");
}

TEST(LibraryPlan, ModelsOfThisMachine) {
  setenv("GIMBAL_MODELS", (test::golden_dir() + "/stories").c_str(), 1);
  const auto models = Engine(on_cpu()).models();
  const auto story = std::find_if(models.begin(), models.end(),
                                  [](const LocalModel& m) { return m.name == "stories260K-f32"; });
  ASSERT_NE(story, models.end());
  EXPECT_EQ(story->source, "GIMBAL_MODELS");
  EXPECT_EQ(story->path, test::golden_dir() + "/stories/stories260K-f32.gguf");
  EXPECT_GT(story->bytes, 500'000u);
  auto plan = Engine(on_cpu()).plan(story->name);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->file_bytes, story->bytes);
}

TEST(LibraryPlan, ExplainsEveryOp) {
  Engine engine(on_cpu());
  auto e = engine.explain("default");
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_EQ(e->plan.layers, 5);
  EXPECT_GT(e->weight_bytes_per_token, 0);
  ASSERT_GE(e->programs.size(), 2u);
  EXPECT_EQ(e->programs[0].purpose, "generation");
  EXPECT_EQ(e->programs[0].rows, 1);
  std::set<std::string> explained;
  for (const ExplainedProgram& p : e->programs)
    for (const ExplainedOp& op : p.ops) {
      ASSERT_LT(op.choice, e->choices.size()) << op.name;
      explained.insert(e->choices[op.choice].kernel);
    }
  bool rejected = false;
  for (const KernelChoice& c : e->choices) {
    EXPECT_EQ(c.device, "cpu:0");
    EXPECT_FALSE(c.why.empty()) << c.kernel;
    for (const RejectedKernels& r : c.rejected) rejected = rejected || !(r.why.empty() || r.kernels.empty());
  }
  EXPECT_TRUE(rejected);
  auto model = engine.load("default");
  TextOptions o;
  o.max_tokens = 3;
  ASSERT_TRUE(model->new_sequence()->generate("Once", o));
  for (const ReceiptLine& l : model->receipt())
    EXPECT_TRUE(l.op == "top_k" || explained.contains(l.kernel)) << l.kernel;
}

TEST(LibraryKernels, AreThoseThatRan) {
  Engine engine(on_cpu());
  std::set<std::string> names;
  for (const Kernel& k : engine.kernels()) {
    EXPECT_EQ(k.name.find("cpu."), k.device == "cpu:0" ? 0u : std::string::npos) << k.name;
    EXPECT_FALSE(k.op.empty() || k.output.empty()) << k.name;
    EXPECT_TRUE(k.needs.find(k.missing) != std::string::npos) << k.name;
    if (k.missing.empty()) names.insert(k.name);
  }
  auto model = engine.load("default");
  ASSERT_TRUE(model) << model.error().message;
  TextOptions o;
  o.max_tokens = 3;
  ASSERT_TRUE(model->new_sequence()->generate("Once", o));
  for (const ReceiptLine& l : model->receipt()) EXPECT_TRUE(names.contains(l.kernel)) << l.kernel;
}

}  // namespace
