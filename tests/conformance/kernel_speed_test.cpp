// What the kernel benchmark runs and counts, on a device that notes every op: a benchmark of nothing has no
// speed.
#include "conformance/kernel_speed.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "conformance/conformance.h"
#include "conformance/kernel_setup.h"
#include "discovery/registry.h"
#include "support/fake_backend.h"

namespace gimbal::test {
namespace {

struct Calls {
  std::map<OpKind, int> count;
  std::set<const void*> weights;  // of products
  std::vector<int> rows;          // of products, one per call
};

FakeSettings watched(Calls& calls) {
  FakeSettings s;
  s.compute = [&calls](const FakeCall& c) {
    const OpKind kind{c.op.kind};
    calls.count[kind]++;
    if (kind == OpKind::MatMul) calls.weights.insert(c.x[0]), calls.rows.push_back(c.rows);
  };
  auto product = [](const char* name, DType w, DType x, int rank) {
    gimbal_kernel_info k = claims(name, OpKind::MatMul, set_of(w), GIMBAL_DENSE);
    k.in[1] = claim_of(set_of(x)), k.rank = int16_t(rank);
    return k;
  };
  s.rows = {product("fake.slow.mat_mul.q8_0", DType::Q8_0, DType::A8_32, 0),
            product("fake.fast.mat_mul.q8_0", DType::Q8_0, DType::A8_32, 5),
            product("fake.fast.mat_mul.f32", DType::F32, DType::F32, 5),
            product("fake.few.mat_mul.f32", DType::F32, DType::F32, 9)};
  static constexpr gimbal_limit kFew[] = {{"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 1}};
  limit(s.rows[3], kFew);
  gimbal_kernel_info quantize = fake_row("fake.quantize", OpKind::Quantize);
  quantize.out[0] = claim_of(set_of(DType::A8_32));
  s.rows.push_back(quantize);
  return s;
}

SpeedRequest quick(int rows) {
  SpeedRequest r;
  r.rows = rows, r.bytes = 40 << 20, r.seconds = 1e-6;
  return r;
}

TEST(KernelSpeed, FewRowsGoOverMoreMemoryThanAskedFor) {
  Calls calls;
  auto d = open_fake(watched(calls));
  auto s = KernelTimer(*d).measure(1, DType::Q8_0, quick(1));
  ASSERT_TRUE(s) << s.error().message;
  ASSERT_TRUE(*s);
  const double matrix = 2048 * 8192 * 34 / 32;
  EXPECT_EQ((*s)->ops, 3) << "40 MiB in matrices of 17.8 MB";
  EXPECT_EQ(calls.weights.size(), 3u) << "each one elsewhere";
  EXPECT_EQ((*s)->memory, uint64_t(3 * matrix));
  EXPECT_DOUBLE_EQ((*s)->cost.operations, 3. * 2 * 2048 * 8192);
  EXPECT_DOUBLE_EQ((*s)->cost.bytes_read, 3 * (matrix + 2048 / 32 * 40));
  EXPECT_TRUE((*s)->int8);
  EXPECT_GT((*s)->seconds, 0);
  EXPECT_EQ(calls.count[OpKind::Quantize], 1) << "before the measuring, and once for all";
  EXPECT_EQ(calls.count[OpKind::MatMul], 2 + 3 * (*s)->passes) << "two of trial";
  for (int rows : calls.rows) EXPECT_EQ(rows, 1);
}

TEST(KernelSpeed, ManyRowsOfFloats) {
  Calls calls;
  auto d = open_fake(watched(calls));
  auto s = KernelTimer(*d).measure(2, DType::F32, quick(96));
  ASSERT_TRUE(s && *s);
  EXPECT_EQ((*s)->rows % 16, 0);
  EXPECT_DOUBLE_EQ((*s)->cost.operations, 2. * 2048 * 8192 * (*s)->rows * (*s)->ops);
  EXPECT_FALSE((*s)->int8);
  EXPECT_EQ(calls.rows.back(), (*s)->rows);
}

TEST(KernelSpeed, OnlyTheRowThatWouldBeChosenUnlessAllAreWanted) {
  Calls calls;
  auto d = open_fake(watched(calls));
  KernelTimer timer(*d);
  auto computed = [&](size_t kernel, DType t, SpeedRequest r) {
    auto s = timer.measure(kernel, t, r);
    EXPECT_TRUE(s) << s.error().message;
    return s && *s;
  };
  EXPECT_FALSE(computed(0, DType::Q8_0, quick(1))) << "outranked";
  SpeedRequest all = quick(1);
  all.only_chosen = false;
  EXPECT_TRUE(computed(0, DType::Q8_0, all));
  EXPECT_TRUE(computed(3, DType::F32, quick(1)));
  EXPECT_FALSE(computed(2, DType::F32, quick(1))) << "outranked for one row";
  all.rows = 8;
  EXPECT_FALSE(computed(3, DType::F32, all)) << "takes one row at most";
  SpeedRequest preferred = quick(1);
  preferred.kernels.patterns = {"fake.slow.*"};
  EXPECT_TRUE(computed(0, DType::Q8_0, preferred));
  EXPECT_FALSE(computed(1, DType::Q8_0, preferred));
}

TEST(KernelSpeed, WhatIsMissingIsSaid) {
  Calls calls;
  FakeSettings s = watched(calls);
  s.rows.pop_back();  // nothing quantizes
  auto d = open_fake(std::move(s));
  auto speed = KernelTimer(*d).measure(1, DType::Q8_0, quick(1));
  ASSERT_FALSE(speed);
  EXPECT_EQ(speed.error().code, Code::Unsupported);
  EXPECT_NE(speed.error().message.find("quantize"), std::string::npos) << speed.error().message;
}

// Row 0 takes a moment and row 1 does not, so the order of their times is certain.
TEST(KernelSpeed, ARaceIsOverTheSameWorkInTurn) {
  Calls calls;
  FakeSettings s = watched(calls);
  std::vector<int> order;
  std::map<int, size_t> rows;
  s.compute = [&, watch = s.compute](const FakeCall& c) {
    watch(c);
    if (OpKind(c.op.kind) != OpKind::MatMul) return;
    order.push_back(c.op.kernel), rows[c.op.kernel] += size_t(c.rows);
    if (c.op.kernel == 0) std::this_thread::sleep_for(std::chrono::microseconds(200 * c.rows));
  };
  auto d = open_fake(std::move(s));
  const Bench shape{
      "", {{Shape(DType::Q8_0, {2048, 1024}), {}}, {Shape(DType::A8_32, {2048, 8}), {}}}, {}, true};
  auto seconds = KernelTimer(*d).race({0, 1}, OpKind::MatMul, shape, 8, 4 << 20, {});
  ASSERT_TRUE(seconds) << seconds.error().message;
  ASSERT_EQ(seconds->size(), 2u);
  EXPECT_GT((*seconds)[0], (*seconds)[1]);
  EXPECT_GT((*seconds)[1], 0);
  EXPECT_EQ(calls.weights.size(), 2u) << "4 MiB in matrices of 2.2 MB";
  EXPECT_EQ(calls.count[OpKind::Quantize], 1);
  // Four trials of one op and 4 rows each; then passes of two ops and 8 rows. What would change the choice
  // takes 25 of them, what would not takes 5.
  EXPECT_EQ(std::vector<int>(order.begin(), order.begin() + 8), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(rows[0], 4u * 4 + 25u * 2 * 8);
  EXPECT_EQ(rows[1], rows[0]) << "hopeless or not, the first one takes part, and so does who beats it";
  order.clear(), rows.clear();
  ASSERT_TRUE(KernelTimer(*d).race({1, 0}, OpKind::MatMul, shape, 8, 4 << 20, {}));
  EXPECT_EQ(rows[1], 4u * 4 + 5u * 2 * 8);
  EXPECT_TRUE(rows[0] == 4u * 4 || rows[0] == rows[1]) << rows[0];
}

// Every backend of this build that has a device here; kernels_test says which have none.
std::vector<std::unique_ptr<Device>> devices_here() {
  std::vector<std::unique_ptr<Device>> all;
  for (LinkedBackends e = linked_backends(); *e; ++e)
    if (auto d = Device::open(*(*e)(), 0)) all.push_back(std::move(*d));
  EXPECT_FALSE(all.empty());
  return all;
}

// Every op that a kernel of this build computes has a shape to be measured in, and its inputs are valid: the
// real kernels run over them, and attention gives averages of what was written to the cache.
TEST(KernelSetup, EveryOpOfEveryKernelHasOne) {
  for (const auto& d : devices_here()) {
    std::set<std::pair<uint16_t, DType>> seen;
    for (size_t i = 0; i < d->kernel_count(); i++)
      for (DType t : formats_of(d->kernel(i))) {
        const OpKind kind{d->kernel(i).op};
        if (!seen.emplace(d->kernel(i).op, t).second) continue;
        for (int rows : {1, 64}) {
          auto s = set_up_kernel(*d, kind, t, rows, 1);
          ASSERT_TRUE(s) << s.error().message;
          EXPECT_FALSE(s->tested.empty()) << info(kind).name;
          EXPECT_FALSE(s->shape.empty()) << info(kind).name;
          for (const gimbal_op& op : s->tested) EXPECT_EQ(OpKind(op.kind), kind);
          for (const gimbal_op& op : s->before) EXPECT_NE(OpKind(op.kind), kind);
        }
      }
    EXPECT_GT(seen.size(), 20u);
  }
}

// A kernel for few rows and one for prompts may be two, so each is counted alone.
TEST(KernelSpeed, AttentionReadsTheWholeCache) {
  const double q = 32 * 128 * 4, kv = 2. * 8 * 128 * 2;  // bytes of a query, and of a position
  for (const auto& d : devices_here()) {
    KernelTimer timer(*d);
    int few = 0, prompts = 0;
    for (size_t i = 0; i < d->kernel_count(); i++) {
      if (OpKind(d->kernel(i).op) != OpKind::Attention || !has(d->kernel(i).in[1].dtypes, DType::F16))
        continue;
      auto one = timer.measure(i, DType::F16, quick(1)), prompt = timer.measure(i, DType::F16, quick(64));
      ASSERT_TRUE(one) << one.error().message;
      ASSERT_TRUE(prompt) << prompt.error().message;
      if (*one) {
        few++;
        EXPECT_DOUBLE_EQ((*one)->cost.bytes_read, (*one)->ops * (q + kv * 4096));
        EXPECT_GE((*one)->ops, 3) << "16.8 MB each";
      }
      if (*prompt) {
        prompts++;
        const double rows = (*prompt)->rows;
        EXPECT_DOUBLE_EQ((*prompt)->cost.operations, (*prompt)->ops * 4. * 32 * 128 * rows * (rows + 1) / 2);
      }
    }
    EXPECT_EQ(few, 1) << "one kernel is chosen for a row";
    EXPECT_EQ(prompts, 1) << "one kernel is chosen for 64 rows";
  }
}

}  // namespace
}  // namespace gimbal::test
