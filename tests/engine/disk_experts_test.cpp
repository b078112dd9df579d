// Experts that are read from disk as they are chosen: the bits of a model in memory, the memory of the plan,
// and what cannot be done.
#include <gtest/gtest.h>
#include <unistd.h>

#include "discovery/registry.h"
#include "engine/engine.h"
#include "engine/measured.h"
#include "engine/options.h"
#include "engine/packed.h"
#include "runtime/memory_check.h"
#include "support/cli.h"
#include "support/placed.h"

namespace gimbal {
namespace {

using test::contains;
namespace fs = std::filesystem;

constexpr const char* kMixture = "arch/gpt-oss";  // which a clone has, too

class DiskExpertsTest : public testing::Test {
 protected:
  DiskExpertsTest() {
    static int n = 0;
    folder_ = test::temporary_path(format("disk-experts-{}", n++));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
    options_.backend = "cpu", options_.threads = 2, options_.verify = Verify::Never;
    options_.run.context = 128, options_.run.batch = options_.run.logit_rows = 8;
  }
  void take(const std::string& golden) {
    model_ = folder_ + "/model.gguf", packed_ = model_ + ".packed";
    fs::copy_file(test::golden_dir() + "/" + golden + ".gguf", model_, fs::copy_options::overwrite_existing);
  }
  LoadedModelPtr load(uint64_t experts_from_disk = 0) {
    options_.run.experts_from_disk = experts_from_disk;
    engine_ =
        std::make_unique<gimbal::Engine>(backend_registry(), options_, [](const Event&) { return true; });
    auto file = open_model_file(model_);
    EXPECT_TRUE(file) << file.error().message;
    auto loaded = engine_->load(*file);
    failed_ = loaded ? Error{} : loaded.error();
    return loaded ? *loaded : nullptr;
  }
  void pack() {
    const auto loaded = load();
    ASSERT_TRUE(loaded) << failed_.message;
    auto path = pack_weights(loaded->source, loaded->model->plan(), false);
    ASSERT_TRUE(path) << path.error().message;
  }
  // A budget that is the least, and half of the experts if that is more.
  uint64_t half() {
    const auto all = load(uint64_t(1) << 40);
    EXPECT_TRUE(all) << failed_.message;
    const DiskExperts& d = all->model->plan().stages[0].experts;
    EXPECT_EQ(d.budget, d.all) << "never more than there are";
    return std::max(d.least, d.all / 2);
  }
  static std::vector<float> logits(Model& m, size_t split) {
    return test::logits_of(m, test::any_tokens(40, m.config().vocabulary), split);
  }

  std::string folder_, model_, packed_;
  EngineOptions options_;
  Error failed_;
  std::unique_ptr<gimbal::Engine> engine_;
};

TEST_F(DiskExpertsTest, GiveTheBitsOfMemoryWithinThePlan) {
  std::vector<const char*> names = {kMixture};
  if (test::whole_collection())
    names.insert(names.end(), {"arch/mixtral", "arch/qwen2moe", "arch/qwen3moe", "more/arch/deepseek2",
                               "more/arch/glm4moe", "more/arch/lfm2moe", "more/arch/llama4"});
  for (const char* name : names) {
    SCOPED_TRACE(name);
    take(name);
    pack();
    const auto in_memory = load();
    ASSERT_TRUE(in_memory) << failed_.message;
    EXPECT_FALSE(in_memory->model->plan().stages[0].reads_experts());
    const auto want = logits(*in_memory->model, 0);
    const uint64_t budget = half();
    const auto loaded = load(budget);
    ASSERT_TRUE(loaded) << failed_.message;
    Model& m = *loaded->model;
    const Stage& stage = m.plan().stages[0];
    EXPECT_LE(stage.experts.budget, budget);
    EXPECT_LT(stage.experts.budget, stage.experts.all);
    EXPECT_EQ(stage.memory.weights, stage.experts.in_memory + stage.experts.budget);
    ExpertCache::Counts before = m.expert_counts(0);
    EXPECT_LE(before.bytes_in_memory, stage.experts.in_memory) << "no expert was chosen";
    for (size_t split : {0, 1, 7}) {
      EXPECT_EQ(test::bits_differ(logits(m, split), want), "") << split << " tokens at a time";
      const ExpertCache::Counts c = m.expert_counts(0);
      EXPECT_GT(c.wanted, before.wanted);
      EXPECT_GT(c.read, before.read);
      EXPECT_LE(c.read, c.wanted);
      EXPECT_GT(c.dropped, before.dropped) << "half of the experts do not suffice";
      EXPECT_GT(c.bytes_read, before.bytes_read);
      EXPECT_LE(c.bytes_at_most, stage.memory.weights);
      before = c;
    }
  }
}

TEST_F(DiskExpertsTest, WithMemoryForAllAreReadOnce) {
  take(kMixture);
  pack();
  const auto loaded = load(uint64_t(1) << 40);
  ASSERT_TRUE(loaded) << failed_.message;
  logits(*loaded->model, 0);
  const ExpertCache::Counts first = loaded->model->expert_counts(0);
  logits(*loaded->model, 0);
  const ExpertCache::Counts again = loaded->model->expert_counts(0);
  EXPECT_EQ(again.read, first.read);
  EXPECT_EQ(again.bytes_read, first.bytes_read);
  EXPECT_EQ(again.dropped, 0u);
  EXPECT_GT(again.wanted, first.wanted);
}

TEST_F(DiskExpertsTest, TheLeastBudgetIsNamedAndSuffices) {
  take(kMixture);
  pack();
  EXPECT_FALSE(load(1));
  EXPECT_EQ(failed_.code, Code::Usage);
  EXPECT_STREQ(failed_.field, "experts_from_disk");
  EXPECT_SAYS(failed_.remedy, "or a smaller 'batch'");
  const uint64_t least = load(uint64_t(1) << 40)->model->plan().stages[0].experts.least;
  EXPECT_SAYS(failed_.remedy, "");
  EXPECT_FALSE(load(least - 1));
  EXPECT_SAYS(failed_.limit, format("{}", least));
  EXPECT_TRUE(load(least)) << failed_.message;
  options_.run.batch = options_.run.logit_rows = 1;
  const auto one = load(least - 1);
  ASSERT_TRUE(one) << failed_.message;
  EXPECT_LT(one->model->plan().stages[0].experts.least, least);
}

TEST_F(DiskExpertsTest, NeedPackedWeightsAndExperts) {
  take(kMixture);
  EXPECT_FALSE(load(1 << 20));
  EXPECT_SAYS(failed_.message, "experts are read from packed weights, which cannot be used: there are none");
  EXPECT_STREQ(failed_.field, "experts_from_disk");
  ASSERT_TRUE(write_file(packed_, "a letter to somebody"));
  EXPECT_FALSE(load(1 << 20));
  EXPECT_SAYS(failed_.message, "not a file of packed weights");
  fs::remove(packed_);
  pack();
  const auto in_part = load(half());
  ASSERT_TRUE(in_part) << failed_.message;
  const std::string before = *read_file(packed_);
  const auto again = pack_weights(in_part->source, in_part->model->plan(), false);
  ASSERT_TRUE(again) << "packing reads the model's own file: " << again.error().message;
  EXPECT_TRUE(*read_file(packed_) == before);
  options_.packed = Packed::Off;
  EXPECT_FALSE(load(1 << 20));
  EXPECT_SAYS(failed_.message, "'packed' is off");
  options_.packed = Packed::Auto;
  take("arch/llama-gqa");
  EXPECT_FALSE(load(1 << 20));
  EXPECT_SAYS(failed_.message, "the model has no experts on the CPU");
  ModelOptions m;
  m.experts_from_disk = "much";
  const auto wrong = engine_options({}, m);
  ASSERT_FALSE(wrong);
  EXPECT_STREQ(wrong.error().field, "experts_from_disk");
  m.experts_from_disk = "1.5GiB";
  EXPECT_EQ(engine_options({}, m)->run.experts_from_disk, uint64_t(3) << 29);
}

TEST_F(DiskExpertsTest, ATruncatedFileEndsARequestAndNotTheProcess) {
  take(kMixture);
  pack();
  const auto loaded = load(half());
  ASSERT_TRUE(loaded) << failed_.message;
  Model& m = *loaded->model;
  const auto tokens = test::any_tokens(4, m.config().vocabulary);
  auto s = Session::create(m);
  ASSERT_TRUE(s);
  auto advance = [&] {
    return (*s)->advance(tokens, Session::Wanted::All, [](size_t, std::span<const float>) {});
  };
  ASSERT_TRUE(advance());
  const auto before = (*s)->tokens().size();
  ASSERT_EQ(truncate(packed_.c_str(), long(FilePages::page_bytes())), 0);
  const auto refused = advance();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Failed);
  EXPECT_SAYS(refused.error().message, packed_);
  EXPECT_EQ((*s)->tokens().size(), before) << "as before the step";
  EXPECT_FALSE(advance()) << "and no later step computes with bytes that are not the file's";
}

TEST_F(DiskExpertsTest, ThePlanMeasuresWhatItPromises) {
  take(kMixture);
  pack();
  const auto loaded = load(half());
  ASSERT_TRUE(loaded) << failed_.message;
  const ModelPlan& plan = loaded->model->plan();
  const auto speed = measure_experts(plan);
  ASSERT_TRUE(speed) << speed.error().message;
  const DiskExperts& d = plan.stages[0].experts;
  EXPECT_EQ(speed->of_token, d.of_token);
  EXPECT_GT(speed->computed, d.of_token);
  EXPECT_GT(speed->disk, 0);
  EXPECT_GT(speed->memory, 0);
  EXPECT_GT(speed->evenly, speed->at_least);
  const double most_seconds = double(d.of_token) / speed->disk;
  EXPECT_LT(speed->at_least, 1 / most_seconds) << "reading alone takes longer";
  // A step of one text reads the experts that its token chooses, and all weights but those and the embedding.
  const Program& p = plan.stages[0].buckets[0].program;
  uint64_t least = d.of_token, most = d.of_token;
  for (uint16_t w : p.weights) {
    const std::string& name = p.info[w].name;
    if (contains(name, "token_embd.") || contains(name, "_exps.weight")) continue;
    most += p.values[w].bytes;
    if (!contains(name, "_exps.")) least += p.values[w].bytes;  // a bias of experts may be read in part
  }
  EXPECT_GE(speed->computed, least);
  EXPECT_LE(speed->computed, most);
  const double computing = double(speed->computed) / speed->memory,
               from_disk = 1 - double(d.budget) / double(d.all);
  EXPECT_DOUBLE_EQ(speed->at_least, 1 / (computing + most_seconds));
  EXPECT_DOUBLE_EQ(speed->evenly, 1 / (computing + most_seconds * from_disk));
  const auto none = measure_experts(load()->model->plan());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Usage);
}

}  // namespace
}  // namespace gimbal
