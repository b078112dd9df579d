// The largest logits, which the device finds: they are among all logits, which stay where they are, on one
// device and where layers are divided.
#include "runtime/top_logits.h"

#include <gtest/gtest.h>

#include "runtime/session.h"
#include "support/golden.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

TEST(TopLogits, LeaveAllLogitsAsTheyAre) {
  const ModelSource file = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  const int layers = configure(file)->layers;
  const auto first = open_one("cpu", 0, "threads=1"), second = open_one("cpu", 0, "threads=1");
  const std::vector<int32_t> tokens = any_tokens(20, 500);
  RunOptions o;
  o.context = 64, o.batch = 32;
  for (const std::vector<Placement>& where :
       {std::vector<Placement>{{first.get(), layers, ""}},
        std::vector<Placement>{{first.get(), 2, ""}, {second.get(), layers - 2, ""}}}) {
    SCOPED_TRACE(where.size());
    auto model = load_placed(file, where, o);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_GE((*model)->plan().max_top(), 64);
    auto s = *Session::create(**model);
    std::vector<float> want;
    ASSERT_TRUE(s->advance(tokens, Session::Wanted::Last,
                           [&](size_t, std::span<const float> l) { want.assign(l.begin(), l.end()); }));
    std::vector<float> falling = want;
    std::sort(falling.begin(), falling.end(), std::greater<float>());
    for (const int k : {1, 64}) {
      s->rewind(0);
      const auto top = s->advance_top(tokens, k);
      ASSERT_TRUE(top) << top.error().message;
      ASSERT_GE(top->logits.size(), size_t(k));
      for (int i = 0; i < k; i++) {
        EXPECT_EQ(top->logits[size_t(i)], falling[size_t(i)]) << i;
        EXPECT_EQ(want[size_t(top->ids[size_t(i)])], falling[size_t(i)]) << i;
      }
      const auto all = s->all_logits();
      ASSERT_TRUE(all) << all.error().message;
      EXPECT_EQ(bits_differ(std::vector<float>(all->begin(), all->end()), want), "") << k;
    }
  }
}

}  // namespace
}  // namespace gimbal::test
