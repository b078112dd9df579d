// The engine over the runtime over a fake driver, whose launches run the same kernels through the emulator:
// so this shows the host's logic on whole programs, not the arithmetic of a GPU. Included by a test of each
// vendor, which defines kBackend.
#pragma once
#include "backends/driver_api/fake.h"
#include "gpu/kernels_checks.h"
#include "gpu/models_checks.h"

namespace gimbal::test {
namespace {

// Matrix units would exchange words through memory here, which is slow: emulated_kernels_test has all of
// their kernels.
constexpr const char* kLoops = "matrix=0";

class Models : public testing::Test {
 protected:
  void SetUp() override {
    std::printf("%s\n", control_.says);
    control_.set_seed(3);  // an order of the launches that only the recordings restrain
  }
  const FakeControl& control_ = fake();
};

TEST_F(Models, AgreeWithTheReferenceOnEveryRow) { check_kernels(kBackend, kLoops); }
TEST_F(Models, GiveTheBitsOfTheCpu) { check_bits_of_the_cpu({kBackend, kLoops}); }
TEST_F(Models, GiveTheBitsOfTheCpuWithEveryCache) { check_every_cache({kBackend, kLoops}); }
TEST_F(Models, GiveTheSameBitsForAnyBatchAndSplitAndInParts) {
  check_batches_and_splits({kBackend, kLoops},
                           {{kBackend, "graphs=0\nmatrix=0"}, {kBackend, "graphs=0\nmatrix=0\npart=20000"}});
}
TEST_F(Models, GiveTheBitsOfTheCpuWithAnAdapter) { check_lora({kBackend, kLoops}); }
TEST_F(Models, ContinueAsTheReferenceDoes) { check_continuations({kBackend, kLoops}); }

TEST_F(Models, TellTheStoryThatTheCpuTells) {
  check_story({kBackend, ""});
  std::printf("%d launches\n", control_.launches());
  EXPECT_GT(control_.launches(), 5000);
  EXPECT_EQ(control_.handles(), 0);
  EXPECT_EQ(control_.allocated(), 0u);
}

// In the middle of a story: the error is that of a lost device, at once and ever after.
TEST_F(Models, StopWhenTheDeviceIsLost) {
  auto e = open_model(golden_dir() + "/stories/stories260K-q8_0.gguf", {kBackend, ""});
  ASSERT_TRUE(e) << e.error().message;
  auto session = *Session::create(*e->model);
  auto advance = [&] {
    return session->advance(std::vector<int32_t>{1}, Session::Wanted::Last,
                            [](size_t, std::span<const float>) {});
  };
  ASSERT_TRUE(advance());
  control_.lose(10, 700);
  for (int i = 0; i < 2; i++) {
    auto lost = advance();
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, Code::DeviceLost) << lost.error().message;
    expect_words(lost.error().message, {"accessed memory outside its buffers", "error 700"});
  }
}

}  // namespace
}  // namespace gimbal::test
