// The runtime over a fake driver: the example kernels give what C++ gives, as graphs and launch by launch,
// with whatever order the driver is free to choose. Included by a test of each vendor, which defines Subject.
#pragma once
#include <thread>

#include "backends/driver_api/fake.h"
#include "gpu/example_checks.h"

namespace gimbal::gpu {
namespace {

using test::fake;
using test::FakeControl;
using test::open_fake;

struct Mode {
  const char *name, *variant, *options;
  bool graphs;
};

class Driver : public testing::TestWithParam<Mode> {
 protected:
  std::unique_ptr<Runtime> open() {
    std::unique_ptr<Runtime> runtime;
    Failure f = open_fake(Subject::vendor(), &runtime, GetParam().options, GetParam().variant);
    EXPECT_FALSE(f) << f.text;
    return runtime;
  }
  const FakeControl& control_ = fake(GetParam().variant);
};

TEST_P(Driver, RunsTheExamplesInEveryOrder) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    control_.set_seed(seed);
    auto runtime = open();
    ASSERT_TRUE(runtime);
    check_examples(*runtime, Subject::examples());
  }
}

TEST_P(Driver, RoundsOnce) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  check_rounding(*runtime, Subject::rounding());
}

// A chain with stages of several launches that do not wait for each other: y[k] = 2 x + k, then x = y[0] +
// ... by row_sum.
struct Wide {
  static constexpr uint32_t kWidth = 7, kCount = 64;
  Wide(TestDevice& device, bool ordered) {
    x = device.buffer(std::vector<float>(kCount, 1.f));
    y = device.buffer(std::vector<float>(kCount * kWidth));
    sums = device.buffer(std::vector<float>(kWidth));
    for (uint32_t k = 0; k < kWidth; k++) {
      all.push_back(device.launch("scaled_sum", {{x, 0, kCount * 4}, {y, 256 * k, kCount * 4}},
                                  ScaledSumParams{0, 0, kCount, float(k)}, 1));
      all.back().after_all = k == 0;
    }
    all.push_back(device.launch("row_sum", {{y, 0, kCount * kWidth * 4}, {sums, 0, kWidth * 4}},
                                RowSumParams{kCount, 0}, kWidth));
    all.back().after_all = ordered;
  }
  bool right(TestDevice& device) const {
    const auto got = device.contents<float>(sums, kWidth);
    for (uint32_t k = 0; k < kWidth; k++)
      if (got[k] != float(kCount) * (2.f + float(k))) return false;
    return true;
  }
  Buffer *x, *y, *sums;
  std::vector<Launch> all;
};

TEST_P(Driver, OrdersWhatMustBeOrdered) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 12; seed++)
    for (bool ordered : {true, false}) {
      control_.set_seed(seed);
      auto runtime = open();
      ASSERT_TRUE(runtime);
      TestDevice device(*runtime, Subject::examples());
      Wide wide(device, ordered);
      const Failure f = device.run(wide.all);
      ASSERT_FALSE(f) << f.text;
      if (ordered) EXPECT_TRUE(wide.right(device)) << "seed " << seed;
      else wrong += !wide.right(device);
    }
  EXPECT_GT(wrong, 0) << "the fake does not show a missing order: this test proves nothing";
}

TEST_P(Driver, AllocatesNothingInReplays) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  TestDevice device(*runtime, Subject::examples());
  Wide wide(device, true);
  Recording* r = nullptr;
  ASSERT_FALSE(runtime->record(wide.all, &r));
  const auto bytes = control_.allocated();
  const int handles = control_.handles(),
            allocations = control_.calls(Subject::symbol("cuMemAlloc_v2", "hipMalloc"));
  const char* launch = Subject::symbol("cuLaunchKernel", "hipModuleLaunchKernel");
  const int launches = control_.calls(launch);
  for (int i = 0; i < 5; i++) ASSERT_FALSE(runtime->replay(r));
  ASSERT_FALSE(runtime->wait());
  EXPECT_TRUE(wide.right(device));
  EXPECT_EQ(control_.allocated(), bytes);
  EXPECT_EQ(control_.handles(), handles);
  EXPECT_EQ(control_.calls(Subject::symbol("cuMemAlloc_v2", "hipMalloc")), allocations);
  EXPECT_EQ(control_.launches(), 5 * 8);
  EXPECT_EQ(control_.calls(launch) - launches, GetParam().graphs ? 0 : 5 * 8);
  EXPECT_EQ(control_.calls(Subject::symbol("cuGraphLaunch", "hipGraphLaunch")), GetParam().graphs ? 5 : 0);
  runtime->discard(r);
}

TEST_P(Driver, GivesEverythingBack) {
  {
    auto runtime = open();
    ASSERT_TRUE(runtime);
    TestDevice device(*runtime, Subject::examples());
    Wide wide(device, true);
    ASSERT_FALSE(device.run(wide.all));
    EXPECT_GT(control_.handles(), 0);
    EXPECT_GT(control_.allocated(), 0u);
  }
  EXPECT_EQ(control_.handles(), 0);
  EXPECT_EQ(control_.allocated(), 0u);
}

// The driver knows which device a thread talks to: each thread must say so.
TEST_P(Driver, WorksFromAnyThread) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  std::thread([&] { check_examples(*runtime, Subject::examples()); }).join();
  check_memory(*runtime);
  std::thread([&] { runtime.reset(); }).join();
  EXPECT_EQ(control_.handles(), 0);
}

TEST_P(Driver, LoadsAModuleOnce) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  Kernel* k = nullptr;
  for (int i = 0; i < 2; i++)
    for (const KernelCode& code : Subject::examples()) ASSERT_FALSE(runtime->load(code, &k));
  EXPECT_EQ(control_.calls(Subject::symbol("cuModuleLoadDataEx", "hipModuleLoadDataEx")), Subject::kModules);
}

TEST_P(Driver, AnEmptyRecordingDoesNothing) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  Recording* r = nullptr;
  ASSERT_FALSE(runtime->record({}, &r));
  ASSERT_FALSE(runtime->replay(r));
  ASSERT_FALSE(runtime->wait());
  runtime->discard(r);
  EXPECT_EQ(control_.launches(), 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, Driver,
                         testing::Values(Mode{"Graphs", "whole", "", true},
                                         Mode{"GraphsOff", "whole", "graphs=0", false},
                                         Mode{"NoGraphs", "no_graphs", "", false}),
                         [](auto& p) { return p.param.name; });

TEST(DriverFacts, AreThoseOfTheDevice) {
  const FakeControl& control = fake();
  control.set_devices(3), control.set_memory(uint64_t(5) << 30), control.set_unified(1);
  std::unique_ptr<Runtime> runtime;
  ASSERT_FALSE(open_fake(Subject::vendor(), &runtime, "", "whole", 2));
  const Facts& f = runtime->facts();
  std::printf("%s; %s\n", f.name.c_str(), f.driver.c_str());
  EXPECT_EQ(f.name, "fake GPU 2 (" + std::string(control.says) + ")");
  EXPECT_EQ(f.driver, Subject::symbol("CUDA 12.4", "HIP 6.2.41133"));
  EXPECT_EQ(f.memory_total, uint64_t(5) << 30);
  EXPECT_EQ(f.memory_free, uint64_t(5) << 30);
  EXPECT_TRUE(f.unified_memory);
  EXPECT_FALSE(f.software);
  EXPECT_EQ(f.pci_id, "0000:03:00.0");
  EXPECT_EQ(f.compute_capability, Subject::symbol("9.0", "gfx90a"));
  Buffer* b = nullptr;
  ASSERT_FALSE(runtime->allocate(1 << 20, &b));
  EXPECT_EQ(runtime->facts().memory_free, (uint64_t(5) << 30) - (1 << 20));
  runtime->release(b);
  EXPECT_EQ(runtime->facts().memory_free, uint64_t(5) << 30);
}

}  // namespace
}  // namespace gimbal::gpu
