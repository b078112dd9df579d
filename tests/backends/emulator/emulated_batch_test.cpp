// Batches of many sequences on the emulated GPU and over a GPU and the CPU: each sequence gets the bits that
// it has alone on the CPU.
#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/placed.h"
#include "support/schedules.h"

namespace gimbal::test {
namespace {

TEST(EmulatedBatch, RandomSchedulesGiveEachSequenceTheBitsItHasAlone) {
  const ModelSource file = open_file(golden_dir() + "/stories/stories260K-q8_0.gguf");
  const int n = configure(file)->layers;
  const auto cpu = open_one("cpu", 0, "threads=1"), gpu = open_one("emulator");
  RunOptions o;
  o.context = 96, o.batch = 16, o.logit_rows = 3, o.sequences = 6, o.cache_positions = 64 * 7;
  RunOptions one = o;
  one.sequences = 1, one.cache_positions = 0, one.logit_rows = 16;
  auto alone = *load_placed(file, {{cpu.get(), n, ""}}, one);
  const ScheduleOptions schedule{.seed = 5, .steps = 60};
  for (const auto& where : {std::vector<Placement>{{gpu.get(), n, ""}},
                            std::vector<Placement>{{cpu.get(), 2, ""}, {gpu.get(), n - 2, ""}}}) {
    auto many = *load_placed(file, where, o);
    expect_all_of_it(Schedule(*many, *alone, schedule).run());
  }
}

}  // namespace
}  // namespace gimbal::test
