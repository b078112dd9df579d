// What a mixture costs, beside its file: the plan and the loss of a model that is encoded in memory are those
// of the file that `gimbal quantize` writes.
#include "calibration/mixture_choice.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/importance_run.h"
#include "discovery/registry.h"
#include "engine/find_model.h"
#include "support/golden.h"

namespace gimbal::test {
namespace {

gimbal::EngineOptions cpu_options() {
  gimbal::EngineOptions o;
  o.backend = "cpu", o.threads = 2, o.verify = Verify::Never;
  o.run.context = 128;
  return o;
}

std::string sample() {
  std::string all;
  for (int i = 0; i < 12; i++)
    all +=
        "One day, a little girl named Lily found a big red ball in the park. She wanted to share it with her "
        "mom. ";
  return all;
}

struct Costs {
  ModelFile model = *open_model_file(golden_dir() + "/stories/stories260K-f32.gguf");
  ScoredWindows text = *ScoredWindows::of(**Tokenizer::create(model.file->metadata()), sample(), 64);
  gimbal::Engine planning{backend_registry(), cpu_options()};
  gimbal::Engine measuring{backend_registry(), measuring_options(cpu_options(), 64)};

  MixtureCost cost(const std::string& mixture, uint64_t budget = UINT64_MAX) {
    const ChoiceWork work{model, nullptr, budget};
    auto planned = plan_mixture(planning, work, mixture);
    EXPECT_TRUE(planned) << planned.error().message;
    if (planned->choosable == Choosable::Yes) {
      const auto ok = measure_mixture(measuring, work, text, *planned, {});
      EXPECT_TRUE(ok) << ok.error().message;
    }
    return *planned;
  }
};

TEST(MixtureChoice, CostsAreThoseOfTheFile) {
  Costs s;
  for (const char* mixture : {"Q8_0", "Q4_K_M", "Q2_K"}) {
    const MixtureCost here = s.cost(mixture);
    const std::string path = temporary_path(std::string(mixture) + ".gguf");
    const Derivation derivation{{*mixture_named(mixture), false, {}, {}, {}}, "", ""};
    ASSERT_TRUE(quantize({*s.model.file, derivation}, path));
    Costs other;
    other.model = *open_model_file(path);
    const MixtureCost file = other.cost("");
    EXPECT_EQ(here.planned, file.planned) << mixture;
    EXPECT_EQ(here.totals.bytes, file.totals.bytes) << mixture;
    EXPECT_EQ(here.losses, file.losses) << mixture << ": the same bits";
    EXPECT_EQ(size_t(here.loss.count()), here.losses.size());
    EXPECT_GT(here.losses.size(), 30u);
  }
}

TEST(MixtureChoice, FindsTheLeastLossWithinTheBudget) {
  Costs s;
  const MixtureCost original = s.cost(""), q8 = s.cost("Q8_0"), q2 = s.cost("Q2_K");
  EXPECT_GT(original.planned, q8.planned);
  EXPECT_GT(q8.planned, q2.planned);
  EXPECT_EQ(least_loss({q2, q8}), 1u) << "eight bits lose less than two";
  const Mean more = excess_loss(q2, q8);
  EXPECT_GT(more.value(), 0);
  EXPECT_NEAR(more.value(), q2.loss.value() - q8.loss.value(), 1e-12);
  EXPECT_LT(more.standard_error(), q2.loss.standard_error()) << "the same tokens";
  const MixtureCost over = s.cost("Q8_0", q8.planned - 1), within = s.cost("Q8_0", q8.planned);
  EXPECT_EQ(over.choosable, Choosable::OverBudget);
  EXPECT_TRUE(over.losses.empty());
  EXPECT_EQ(within.choosable, Choosable::Yes);
  EXPECT_EQ(least_loss({over, q2}), 1u);
  EXPECT_EQ(least_loss({over}), SIZE_MAX);
}

TEST(MixtureChoice, NamesWhatCannotBeMade) {
  Costs s;
  s.model = *open_model_file(golden_dir() + "/quant/q-f16.gguf");  // rows of 256, as such mixtures need
  const MixtureCost needs = s.cost("IQ2_XXS");
  EXPECT_EQ(needs.choosable, Choosable::NotMade);
  EXPECT_NE(needs.why.find("importance"), std::string::npos) << needs.why;
  const auto unknown = plan_mixture(s.planning, {s.model, nullptr, UINT64_MAX}, "Q9");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::Usage);
  for (const std::string& name : usual_mixtures()) EXPECT_TRUE(mixture_named(name)) << name;
}

}  // namespace
}  // namespace gimbal::test
