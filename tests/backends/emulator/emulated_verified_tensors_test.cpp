// Kernels of tensors at their first use: compared with the CPU, kept when they are right, never used again
// when they are wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <gimbal/recorded.h>
#include <gimbal/tensor.h>

#include "support/golden.h"

#define TESTED_BACKEND "emulator"

namespace gimbal::test {
namespace {

constexpr const char* kExp = TESTED_BACKEND ".gpu.map.f32.";

class FirstUse : public testing::Test {
 protected:
  void SetUp() override {
    cache = temporary_path("cache");
    std::filesystem::remove_all(cache);
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    x.emplace(Tensor::from<float>({1, -2, 3.5f, 0}, {2, 2}, open("cpu")));
  }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }
  static Queue open(const std::string& where, QueueOptions o = {}) {
    o.allow_software_devices = true;
    auto q = open_queue(where, o);
    EXPECT_TRUE(q) << q.error().message;
    return *q;
  }
  // How many kernels were compared by this queue, and gave these bits.
  static int count(const Queue& q, const std::string& begin, bool right) {
    int n = 0;
    for (const VerifiedKernel& k : q.verified())
      n += k.name.starts_with(begin) && k.right == right && !k.before;
    return n;
  }
  std::string cache;
  std::optional<Tensor> x;
};

TEST_F(FirstUse, WhatIsRightIsKeptForTheNextStart) {
  const Queue q = open(TESTED_BACKEND);
  const Tensor y = x->to(q).map("exp");
  EXPECT_EQ(*y.bytes(), *x->map("exp").bytes());
  EXPECT_EQ(count(q, kExp, true), 1);
  EXPECT_EQ(count(q, "", false), 0);
  EXPECT_TRUE(q.fallbacks().empty());
  EXPECT_EQ(q.counts().uploads, 1u) << "those of the comparison do not count";
  EXPECT_EQ(q.counts().downloads, 1u);
  EXPECT_EQ(q.counts().operations, 1u);
  const Queue later = open(TESTED_BACKEND);
  EXPECT_EQ(*x->to(later).map("exp").bytes(), *y.bytes());
  EXPECT_EQ(count(later, kExp, true), 0) << "nothing is compared again";
  (void)x->to(later).map("log").bytes();
  EXPECT_EQ(count(later, kExp, true), 1) << "another function of the same row";
}

TEST_F(FirstUse, AWrongKernelIsNotUsedAgain) {
  std::vector<std::string> told;
  QueueOptions o;
  o.device_options = "idle=map_2";
  o.on_fallback = [&](const v1::Fallback& f) { told.push_back(f.why.reason); };
  const Queue q = open(TESTED_BACKEND, o);
  const Tensor there = x->to(q);
  for (int round = 0; round < 2; round++) {
    const Tensor y = there.map("exp");
    ASSERT_TRUE(y.ok()) << y.error().message;
    EXPECT_TRUE(y.queue().same_as(q));
    EXPECT_EQ(*y.bytes(), *x->map("exp").bytes());
  }
  EXPECT_EQ(told, std::vector<std::string>{"verification-failed"});
  ASSERT_EQ(q.fallbacks().size(), 1u);
  EXPECT_EQ(q.fallbacks()[0].what, "map of f32 to f32");
  EXPECT_NE(q.fallbacks()[0].why.message.find("4 of 4 numbers differ from the CPU's"), std::string::npos)
      << q.fallbacks()[0].why.message;
  EXPECT_EQ(count(q, kExp, false), 1);
  EXPECT_EQ(*(there + there).bytes(), *(*x + *x).bytes()) << "another kernel";
  EXPECT_EQ(count(q, "", false), 1);
  EXPECT_EQ(count(q, kExp, true), 1);
  const Queue later = open(TESTED_BACKEND, o);
  (void)x->to(later).map("exp").bytes();
  EXPECT_EQ(count(later, kExp, false), 1) << "a wrong kernel is compared anew: its driver may be another";
}

// A kernel that one thread still compares is used by no other.
TEST_F(FirstUse, ThreadsDoNotUseWhatIsNotComparedYet) {
  QueueOptions o;
  o.device_options = "idle=map_2";
  const Tensor many = Generator(3, open("cpu")).normal({200, 100});
  const auto want = *many.map("exp").bytes();
  for (int round = 0; round < 10; round++) {
    const Queue q = open(TESTED_BACKEND, o);
    const Tensor there = many.to(q);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
      threads.emplace_back([&] {
        for (int call = 0; call < 20; call++) {
          const auto got = there.map("exp").bytes();
          EXPECT_TRUE(got) << got.error().message;
          wrong += !got || *got != want;
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0) << "round " << round;
    EXPECT_EQ(count(q, kExp, false), 1);
  }
}

TEST_F(FirstUse, AStrictQueueRefusesAWrongKernel) {
  QueueOptions o;
  o.strict = true, o.device_options = "idle=map_2";
  const Queue q = open(TESTED_BACKEND, o);
  for (int round = 0; round < 2; round++) {
    const Tensor y = x->to(q).map("exp");
    ASSERT_FALSE(y.ok());
    EXPECT_EQ(y.error().reason, "verification-failed") << y.error().message;
  }
  EXPECT_TRUE(q.fallbacks().empty());
}

TEST_F(FirstUse, RecordedFunctionsAreComparedBeforeTheyRun) {
  const TensorFunction f = [](std::span<const Tensor> in) {
    return std::vector<Tensor>{(in[0] + in[0]).map("exp").sum()};
  };
  QueueOptions o;
  o.device_options = "idle=reduce_sum";
  const Queue wrong = open(TESTED_BACKEND, o);
  const std::vector<Tensor> there = {x->to(wrong)};
  const auto refused = record(wrong, f).run(there);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "verification-failed") << refused.error().message;
  const Queue q = open(TESTED_BACKEND);
  const std::vector<Tensor> in = {x->to(q)};
  auto y = record(q, f).run(in);
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(*(*y)[0].bytes(), *(*f(std::vector<Tensor>{*x}))[0].bytes());
  EXPECT_EQ(count(q, "emulator.gpu.reduce.f32.", true), 1);
}

TEST_F(FirstUse, AKernelThatWritesIsAnError) {
  QueueOptions o;
  o.device_options = "idle=tensor_assign";
  const Queue q = open(TESTED_BACKEND, o);
  const Tensor there = x->to(q);
  const auto written = there.t().copy_(there);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason, "verification-failed") << written.error().message;
}

TEST_F(FirstUse, WithoutVerifyNothingIsCompared) {
  QueueOptions o;
  o.verify = false, o.device_options = "idle=map_2";
  const Queue q = open(TESTED_BACKEND, o);
  EXPECT_NE(*x->to(q).map("exp").bytes(), *x->map("exp").bytes());
  EXPECT_TRUE(q.verified().empty());
}

}  // namespace
}  // namespace gimbal::test
