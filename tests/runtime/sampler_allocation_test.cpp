// Nothing is allocated per token: its own executable, because it replaces operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "runtime/sampler_reference.h"
#include "support/operator_new.h"

static std::atomic<long> allocations;
static void allocating(size_t) { allocations++; }

namespace gimbal {
namespace {

using namespace gimbal::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Sampler, AllocatesInTheFirstCallOnly) {
  auto logits = random_logits(5000, 13);
  SamplerSettings all_steps;
  all_steps.typical_p = 0.99f, all_steps.repeat_penalty = 1.1f, all_steps.penalty_window = -1,
  all_steps.top_k = 1000;
  all_steps.logit_bias = {{3, 1}, {4, -kInfinity}};
  SamplerSettings no_top_k = all_steps;
  no_top_k.top_k = 0;
  for (const SamplerSettings& s : {SamplerSettings{}, all_steps, no_top_k}) {
    Sampler sampler(s);
    std::vector<int32_t> history(100, 7);
    ASSERT_TRUE(sampler.pick(logits, {}));
    long before = allocations;
    bool ok = true;
    for (int i = 0; i < 100; i++) {
      history[size_t(i)] = i;
      ok = sampler.pick(logits, history) && ok;
    }
    EXPECT_EQ(allocations, before);
    EXPECT_TRUE(ok);
  }
}

}  // namespace
}  // namespace gimbal
