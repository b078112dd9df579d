// Draft heads on the emulator of GPUs: the bits of the CPU, also of rows that attend to later ones, and no
// race.
#include <gtest/gtest.h>

#include <random>

#include "runtime/head_drafter.h"
#include "support/golden.h"
#include "support/made_draft_head.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

// Of a text's rows, and of the rows with results behind them.
std::vector<float> head_logits(Device& device, const ModelSource& file, const DraftHead& head) {
  RunOptions o;
  o.context = 64, o.batch = 24, o.states = true, o.logit_rows = 4;
  set_head_options(head, o);
  const auto model = load_on(device, file, o);
  if (!model) return {};
  std::mt19937 random(5);
  const auto width = size_t(model->plan().takes_states);
  const int texts = 12, wanted = model->plan().options.logit_rows;
  std::vector<float> states(width * size_t(texts + wanted));
  for (size_t i = 0; i < states.size(); i++)
    states[i] = i < width * size_t(texts) || !head.block ? float(random() % 2001) / 1000 - 1 : 0;
  auto sequence = *model->new_sequence();
  Batch batch;
  for (int i = 0; i < texts + wanted; i++)
    batch.rows.push_back(
        {sequence.get(), int32_t(random() % 200), i, {.logits = i >= texts}, &states[size_t(i) * width]});
  const auto out = model->forward(batch);
  EXPECT_TRUE(out) << out.error().message;
  std::vector<float> all;
  for (size_t k = 0; out && k < size_t(wanted); k++)
    all.insert(all.end(), out->logits(k).begin(), out->logits(k).end());
  return all;
}

TEST(EmulatedDraftHeads, HaveTheBitsOfTheCpu) {
  const ModelSource target = open_file(golden_dir() + "/stories/stories260K-f32.gguf");
  const auto cpu = open_one("cpu", 0, "threads=2"), gpu = open_one("emulator", 0, "racecheck=1\nseed=3");
  for (const char* arch : {"eagle3", "dflash"}) {
    SCOPED_TRACE(arch);
    ModelSource file = open_file(made_draft_head(target, arch));
    auto head = read_draft_head(file);
    ASSERT_TRUE(head && *head);
    ASSERT_TRUE(fit_draft_head(**head, file, target));
    const auto want = head_logits(*cpu, file, **head);
    EXPECT_FALSE(want.empty());
    EXPECT_EQ(bits_differ(want, head_logits(*gpu, file, **head)), "");
  }
}

}  // namespace
}  // namespace gimbal::test
