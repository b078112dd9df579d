// The report of packed weights that the engine brings into memory while it loads a model, and its fallback
// when the file is cut meanwhile.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/packed.h"
#include "runtime/packed_weights.h"
#include "support/cli.h"
#include "support/placed.h"

namespace gimbal {
namespace {

using test::contains;
namespace fs = std::filesystem;

class PrefaultReportTest : public testing::Test {
 protected:
  PrefaultReportTest() {
    static int n = 0;
    folder_ = test::temporary_path(format("prefault-{}", n++));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
    model_ = folder_ + "/model.gguf", packed_ = model_ + ".packed";
    options_.backend = "cpu", options_.threads = 2, options_.verify = Verify::Never;
    options_.run.context = 128, options_.run.batch = 32, options_.run.logit_rows = 32;
  }
  LoadedModelPtr load() {
    told_.clear();
    engine_ = std::make_unique<Engine>(backend_registry(), options_, [this](const Event& e) {
      if (const auto* f = std::get_if<Fallback>(&e)) told_ += f->why.message + "\n";
      return true;
    });
    auto file = open_model_file(model_);
    EXPECT_TRUE(file) << file.error().message;
    auto loaded = engine_->load(*file);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? *loaded : nullptr;
  }
  // Of a golden model; its logits without the packed file.
  std::vector<float> pack(const std::string& golden) {
    fs::copy_file(test::golden_dir() + "/" + golden + ".gguf", model_, fs::copy_options::overwrite_existing);
    const auto loaded = load();
    EXPECT_FALSE(loaded->model->prefaulted()) << "nothing is mapped";
    EXPECT_TRUE(pack_weights(loaded->source, loaded->model->plan(), false));
    return logits(loaded);
  }
  static std::vector<float> logits(const LoadedModelPtr& m) {
    return test::logits_of(*m->model, test::any_tokens(40, m->model->config().vocabulary), 32);
  }

  std::string folder_, model_, packed_, told_;
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(PrefaultReportTest, IsReportedAndChangesNoBit) {
  const auto want = pack("stories/stories260K-f32");
  for (int threads : {1, 2}) {
    options_.threads = threads;
    const auto loaded = load();
    const auto& r = loaded->model->prefaulted();
    ASSERT_TRUE(r);
    EXPECT_EQ(r->stopped, "");
    EXPECT_EQ(r->bytes, r->wanted);
    EXPECT_GT(r->bytes, 0u);
    EXPECT_LE(r->bytes, fs::file_size(packed_) + kPackedPage);
    EXPECT_LE(r->threads, unsigned(threads));
    EXPECT_GE(r->threads, 1u);
    EXPECT_EQ(test::bits_differ(logits(loaded), want), "");
  }
  const auto run = test::json_of(test::gimbal({"run", model_, "-n", "1", "-p", "a", "--json"}));
  EXPECT_EQ(run["prefault"]["bytes"], run["prefault"]["wanted"]);
  EXPECT_TRUE(run["prefault"]["stopped"].is_null());
  const auto off =
      test::json_of(test::gimbal({"run", model_, "-n", "1", "-p", "a", "--json", "--packed", "off"}));
  EXPECT_TRUE(off.contains("prefault") && off["prefault"].is_null());
  EXPECT_SAYS(test::gimbal({"run", model_, "-n", "1", "-p", "a", "--stats"}).err, "prefault");
}

// Between the plan and the first use; only rows are lost that the load does not compare.
TEST_F(PrefaultReportTest, AFileThatIsCutMeanwhileIsNotUsed) {
  const auto want = pack("arch/llama-gqa");
  const uint64_t whole = fs::file_size(packed_), cut = (whole - 1) / kPackedPage * kPackedPage;
  options_.before_taking = [&](const ModelPlan& plan) -> Status {
    if (!plan.stages[0].packed) return Done{};
    const Program& p = plan.stages[0].buckets[0].program;
    for (uint16_t w : p.weights) {
      const gimbal_value& v = p.values[w];
      EXPECT_LE(v.offset + sample_bytes(v, kSampleRows), cut) << p.info[w].name;
    }
    fs::resize_file(packed_, cut);
    return Done{};
  };
  const auto loaded = load();
  EXPECT_FALSE(loaded->model->plan().stages[0].packed);
  EXPECT_FALSE(loaded->model->prefaulted());
  EXPECT_SAYS(told_, format("it had {} bytes and now has {}", whole, cut));
  EXPECT_EQ(test::bits_differ(logits(loaded), want), "");
}

}  // namespace
}  // namespace gimbal
