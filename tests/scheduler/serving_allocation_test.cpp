// Memory is taken when a request comes and when its text grows, not for each of its tokens: its own
// executable, because it replaces operator new.
#include "scheduler/served.h"
#include "support/operator_new.h"

static std::atomic<long> allocations;
static void allocating(size_t) { allocations++; }

namespace gimbal::test {
namespace {

TEST(Scheduler, AStepTakesNoMemoryForATokenWithoutProbabilities) {
  OnCpu on(kStories, serving_run(512, 8, 10));
  Scheduler serving(on.shared(), on.on_device_lost(), {});
  int told = 0, ended = 0;
  for (int i = 0; i < 8; i++) {
    GenerationRequest r;
    r.prompt = {1, 400 + i}, r.max_tokens = 300, r.ignore_stop_tokens = true, r.sampler.seed = uint64_t(i);
    r.stops = {"a stop string that never comes"};
    if (i == 1) r.sampler.greedy = true;
    if (i == 2) r.sampler.top_k = 0;
    if (i == 3) r.sampler.repeat_penalty = 1.2f;
    GenerationSink sink{[&](const TokenEvent&) { told++; }, [&](const GenerationEnd&) { ended++; }, {}};
    serving.add(std::make_unique<ScheduledRequest>(uint64_t(i + 1), std::move(r), std::move(sink),
                                                   any_tokenizer(), 512));
  }
  for (int i = 0; i < 20; i++) ASSERT_TRUE(serving.step());
  const int before = told;
  const long taken = allocations;
  bool ok = true;
  for (int i = 0; i < 200; i++) ok = serving.step() && ok;
  const long during = allocations - taken;
  ASSERT_TRUE(ok);
  EXPECT_EQ(told - before, 200 * 8);
  EXPECT_EQ(ended, 0);
  EXPECT_LE(during, 8 * 6) << "texts that grow take memory a few times";
}

}  // namespace
}  // namespace gimbal::test
