// The KV cache takes what is free, never more than can be used, and never what others need.
#include "runtime/memory_check.h"

#include "base/host_memory.h"
#include "device/backends.h"
#include "files/gguf.h"
#include "support/golden.h"

namespace gimbal {
namespace {

// The CPU backend, whose free memory is invented; and it may be memory of its own.
struct Invented {
  const gimbal_backend* real = nullptr;
  gimbal_backend table{};
  uint64_t free = 0;
  bool own = false;
};
Invented& invented() {
  static Invented w = [] {
    Invented w;
    for (LinkedBackends e = linked_backends(); *e; ++e)
      if (std::string((*e)()->name) == "cpu") w.real = (*e)();
    w.table = *w.real;
    w.table.describe = [](gimbal_device* d, gimbal_device_info* i) {
      invented().real->describe(d, i);
      i->memory_free = invented().free;
      if (invented().own) i->threads = 0, i->unified_memory = 0;
    };
    return w;
  }();
  return w;
}

constexpr int kContext = 512, kSequences = 16;
constexpr int64_t kMost = int64_t(kContext) * kSequences;

class CacheSize : public testing::TestWithParam<bool> {
 protected:
  // With `free` bytes: what the plan takes, and what is left of them.
  struct Taken {
    int64_t positions;
    uint64_t cache, others, left;
  };
  Taken plan(uint64_t free, CacheBudget wish, uint64_t promised = 0) {
    invented().free = free, invented().own = GetParam();
    const auto device = *Device::open(invented().table, 0, "threads=1");
    EXPECT_EQ(device->in_host_memory(), !GetParam());
    RunOptions o;
    o.context = kContext, o.sequences = kSequences, o.cache_positions = kContext, o.batch = 32;
    o.promised = promised;
    auto small = make_model_plan(file_, *device, o);
    EXPECT_TRUE(small) << small.error().message;
    auto b = with_larger_cache(file_, std::move(*small), wish);
    EXPECT_TRUE(b) << b.error().message;
    const MemoryPlan& m = b->last().memory;
    EXPECT_GE(cache_positions(*b), kContext);
    EXPECT_LE(cache_positions(*b), kMost);
    return {cache_positions(*b), m.cache, m.total() - m.cache, free - std::min(free, m.total())};
  }
  const ModelSource file_ = *open_gguf(test::golden_dir() + "/stories/stories260K-q8_0.gguf");
};
INSTANTIATE_TEST_SUITE_P(, CacheSize, testing::Bool(),
                         [](const auto& i) { return i.param ? "OwnMemory" : "HostMemory"; });

TEST_P(CacheSize, IsAContextForEachWhereThereIsPlentyAndNoMore) {
  EXPECT_EQ(plan(uint64_t(1) << 40, {kMost, 0, 1}).positions, kMost);
  EXPECT_EQ(plan(uint64_t(1) << 40, {}).positions, kContext) << "nothing is wished";
}

TEST_P(CacheSize, GrowsWithWhatIsFreeAndLeavesItsShare) {
  const Taken all = plan(uint64_t(1) << 40, {kMost, 0, 1}), one = plan(1, {kMost, 0, 1});
  EXPECT_EQ(one.positions, kContext)
      << "one context stays, and check_memory refuses it where it does not fit";
  int64_t before = 0;
  int between = 0;
  for (uint64_t free = one.others + one.cache; free < 4 * (all.others + all.cache); free += free / 16) {
    const Taken t = plan(free, {kMost, 0, 1});
    EXPECT_GE(t.positions, before) << free;
    before = t.positions;
    if (t.positions == kContext || t.positions == kMost) continue;
    between++;
    const uint64_t kept = GetParam() ? free / 16 + one.others : free / 2;
    EXPECT_GE(t.left, kept) << free;
    EXPECT_LT(t.left, kept + (all.cache - one.cache) / uint64_t(kMost - kContext) * 2 * kPagePositions +
                          (all.others - one.others))
        << free << ": a page more would have fitted";
  }
  EXPECT_GE(between, 3);
  EXPECT_EQ(before, kMost);
}

// A context that is no whole number of pages needs all of its last page.
TEST_P(CacheSize, StaysAsLargeAsTheContextWhereNothingIsFree) {
  invented().free = 1, invented().own = GetParam();
  const auto device = *Device::open(invented().table, 0, "threads=1");
  RunOptions o;
  o.context = 500, o.cache_positions = 500, o.sequences = kSequences, o.batch = 32;
  auto small = make_model_plan(file_, *device, o);
  ASSERT_TRUE(small) << small.error().message;
  ASSERT_EQ(cache_positions(*small), 8 * kPagePositions);
  const auto b = with_larger_cache(file_, std::move(*small), {kMost, 0, 1});
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_EQ(cache_positions(*b), 8 * kPagePositions);
}

TEST_P(CacheSize, AModestOneMayTakeWhatWouldBeLeft) {
  const Taken all = plan(uint64_t(1) << 40, {kMost, 0, 1});
  const uint64_t free = (all.others + all.cache) / 15 * 16 + 4096;  // it just fits beside the sixteenth
  EXPECT_LT(plan(free, {kMost, 0, 1}).positions, kMost);
  EXPECT_EQ(plan(free, {kMost, kMost, 1}).positions, kMost);
  EXPECT_EQ(plan(free, {kMost, 2 * kContext, 1}).positions,
            std::max<int64_t>(2 * kContext, plan(free, {kMost, 0, 1}).positions));
}

// What is free now is free once: several that plan at the same time fit beside each other.
TEST_P(CacheSize, SeveralAtATimeFitTogether) {
  const Taken all = plan(uint64_t(1) << 40, {kMost, 0, 1}), one = plan(1, {kMost, 0, 1});
  for (int together : {2, 3, 5})
    for (const int64_t modest : {int64_t(0), kMost}) {
      int larger = 0;
      const uint64_t least = uint64_t(together) * (2 * one.others + one.cache) * 3;
      for (uint64_t free = least; free < 8 * uint64_t(together) * (all.others + all.cache);
           free += free / (test::fewer_cases() ? 2 : 8)) {
        const Taken t = plan(free, {kMost, modest, 1, together});
        EXPECT_LE(uint64_t(together) * (t.others + t.cache), free - free / 16 + uint64_t(together)) << free;
        EXPECT_LE(t.positions, plan(free, {kMost, modest, 1}).positions);
        larger += t.positions > kContext;
      }
      EXPECT_GT(larger, 3);
      EXPECT_EQ(plan(uint64_t(1) << 40, {kMost, modest, 1, together}).positions, kMost);
    }
}

// Of the host's memory, which is free until they use it; a card's is taken when it is allocated.
TEST_P(CacheSize, WhatOtherProcessesPromisedThemselvesIsLeftToThem) {
  const uint64_t plenty = uint64_t(1) << 40, host = host_memory().total;
  EXPECT_EQ(plan(plenty, {kMost, kMost, 1}, 1).positions, kMost);
  EXPECT_EQ(plan(plenty, {kMost, kMost, 1}, uint64_t(1) << 50).positions, kContext) << "sessions need some";
  const Taken all = plan(plenty, {kMost, 0, 1});
  if (GetParam()) {
    EXPECT_EQ(plan(all.others + all.cache, {kMost, 0, 1}, host / 2).positions,
              plan(all.others + all.cache, {kMost, 0, 1}).positions);
  } else {
    EXPECT_EQ(plan(plenty, {kMost, 0, 1}, host).positions, kContext);
  }
}

TEST_P(CacheSize, ModelsThatShareADeviceTakeAShare) {
  const Taken all = plan(uint64_t(1) << 40, {kMost, 0, 1});
  const uint64_t free = 3 * (all.others + all.cache);
  EXPECT_EQ(plan(free, {kMost, 0, 1}).positions, kMost);
  EXPECT_LT(plan(free, {kMost, 0, 8}).positions, kMost / 2);
}

}  // namespace
}  // namespace gimbal
