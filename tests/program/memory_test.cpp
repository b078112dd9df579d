// The plan of what activations share memory, for random programs: never two living values in one place, and
// never far above the least that is possible.
#include "program/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "base/bytes.h"

namespace gimbal {
namespace {

constexpr uint64_t kAlignment = 64;

uint16_t add_value(Program& p, Slot slot, uint64_t bytes, uint16_t root) {
  gimbal_value v{};
  v.slot = uint32_t(slot), v.bytes = bytes, v.rank = 1, v.dim[0] = 1;
  p.values.push_back(v);
  p.info.push_back({"v", Shape(DType::F32, {1}), root});
  return uint16_t(p.values.size() - 1);
}

// Ops that read recent values more often than old ones, some through views.
Program random_program(std::mt19937& r, int ops) {
  Program p;
  std::vector<uint16_t> made = {add_value(p, Slot::Step, 100, 0)};
  for (int i = 0; i < ops; i++) {
    gimbal_op op{};
    op.inputs = uint16_t(1 + r() % 3);
    for (int k = 0; k < op.inputs; k++) {
      const size_t back = std::min<size_t>(made.size() - 1, r() % 5 ? r() % 3 : r() % 40);
      op.in[k] = made[made.size() - 1 - back];
      if (r() % 3 == 0) {
        const uint16_t root = p.info[op.in[k]].root;
        op.in[k] = add_value(p, Slot(p.values[root].slot), p.values[root].bytes, root);
      }
    }
    const Slot slot = r() % 10 == 0 ? Slot::Output : Slot::Work;
    const uint64_t bytes = r() % 4 ? 64 * (1 + r() % 8) : 1 + r() % 5000;
    op.outputs = 1, op.out[0] = add_value(p, slot, bytes, uint16_t(p.values.size()));
    made.push_back(op.out[0]);
    p.ops.push_back(op);
  }
  return p;
}

struct Life {
  size_t first, last;
  uint64_t bytes, offset;
};

// By the definition, value by value.
std::vector<Life> lives(const Program& p) {
  std::vector<Life> all;
  for (size_t v = 0; v < p.values.size(); v++) {
    if (p.info[v].root != v || p.values[v].slot != uint32_t(Slot::Work)) continue;
    Life l{SIZE_MAX, 0, align_up(p.values[v].bytes, kAlignment), p.values[v].offset};
    for (size_t i = 0; i < p.ops.size(); i++) {
      if (p.ops[i].out[0] == v) l.first = i, l.last = std::max(l.last, i);
      for (int k = 0; k < p.ops[i].inputs; k++)
        if (p.info[p.ops[i].in[k]].root == v) l.last = std::max(l.last, i);
    }
    EXPECT_NE(l.first, SIZE_MAX);
    all.push_back(l);
  }
  return all;
}

TEST(WorkMemory, LivingValuesNeverOverlapAndTheTotalIsNearTheLeastPossible) {
  std::mt19937 r(7);
  double worst = 1, sum = 0;
  const int rounds = 300;
  for (int round = 0; round < rounds; round++) {
    Program p = random_program(r, 1 + int(r() % 120));
    ASSERT_TRUE(plan_work(p, kAlignment));
    const auto all = lives(p);
    const uint64_t total = p.slot_bytes[size_t(Slot::Work)];
    uint64_t naive = 0, peak = 0, end = 0;
    for (size_t i = 0; i < all.size(); i++) {
      ASSERT_EQ(all[i].offset % kAlignment, 0u);
      naive += all[i].bytes, end = std::max(end, all[i].offset + all[i].bytes);
      for (size_t j = 0; j < i; j++)
        ASSERT_TRUE(all[i].last < all[j].first || all[j].last < all[i].first ||
                    all[i].offset + all[i].bytes <= all[j].offset ||
                    all[j].offset + all[j].bytes <= all[i].offset)
            << "round " << round << ": values of ops " << all[i].first << " and " << all[j].first;
    }
    for (size_t op = 0; op < p.ops.size(); op++) {
      uint64_t now = 0;
      for (const Life& l : all) now += l.first <= op && op <= l.last ? l.bytes : 0;
      peak = std::max(peak, now);
    }
    ASSERT_EQ(total, end);
    ASSERT_LE(total, naive);
    ASSERT_GE(total, peak);
    for (size_t v = 0; v < p.values.size(); v++) {  // views lie where their root lies
      ASSERT_EQ(p.values[v].slot, p.values[p.info[v].root].slot);
      ASSERT_TRUE(p.values[v].slot != uint32_t(Slot::Work) ||
                  p.values[v].offset == p.values[p.info[v].root].offset);
    }
    if (peak) worst = std::max(worst, double(total) / double(peak)), sum += double(total) / double(peak);
  }
  std::printf("planned / least possible: mean %.3f, worst %.3f\n", sum / rounds, worst);
  EXPECT_LE(worst, 1.5);
}

// A preempted thread may still read it, while others have gone on (backends/cpu/compiled_program.h). On
// request the inputs of products of many rows stay, too.
TEST(WorkMemory, WhatAProductOfOneRowReadsIsNotOverwritten) {
  const struct {
    int rows;
    Kept keep;
    bool stays;
  } kCases[] = {{1, Kept::Needed, true}, {2, Kept::Needed, false}, {2, Kept::ProductInputs, true}};
  for (const auto& [rows, keep, stays] : kCases) {
    Program p;
    uint16_t x = add_value(p, Slot::Step, 64, 0);
    for (int i = 0; i < 50; i++) {
      gimbal_op op{};
      op.kind = uint16_t(i % 5 == 2 ? OpKind::MatMul : OpKind::Add);
      op.inputs = 1, op.in[0] = x;
      op.outputs = 1, op.out[0] = x = add_value(p, Slot::Work, 1000, uint16_t(p.values.size()));
      p.values[x].dim[0] = rows;
      p.ops.push_back(op);
    }
    ASSERT_TRUE(plan_work(p, kAlignment, keep));
    // One value in five is kept; the others share two places.
    EXPECT_EQ(p.slot_bytes[size_t(Slot::Work)], (stays ? 12u : 2u) * align_up(1000, kAlignment));
    for (size_t i = 2; i < p.ops.size(); i += 5)
      for (size_t later = i + 1; stays && later < p.ops.size(); later++)
        EXPECT_NE(p.values[p.ops[later].out[0]].offset, p.values[p.ops[i].in[0]].offset);
  }
}

// Recorded functions of tensors write parts of a value through views: it lives from the first of these on.
TEST(WorkMemory, AValueThatIsWrittenThroughViewsHasOnePlace) {
  Program p;
  const uint16_t x = add_value(p, Slot::Step, 64, 0);
  const uint16_t whole = add_value(p, Slot::Work, 6400, 1);
  auto add_op = [&](uint16_t in, uint16_t out) {
    gimbal_op op{};
    op.inputs = 1, op.in[0] = in, op.outputs = 1, op.out[0] = out;
    p.ops.push_back(op);
  };
  const uint16_t first = add_value(p, Slot::Work, 3200, whole),
                 second = add_value(p, Slot::Work, 3200, whole), between = add_value(p, Slot::Work, 6400, 4);
  add_op(x, first), add_op(x, between), add_op(between, second), add_op(x, second);
  ASSERT_TRUE(plan_work(p, kAlignment));
  EXPECT_EQ(p.slot_bytes[size_t(Slot::Work)], 12800u) << "`between` is needed while `whole` is written";
  EXPECT_EQ(p.values[first].offset, p.values[whole].offset);
  EXPECT_NE(p.values[between].offset, p.values[whole].offset);
}

TEST(WorkMemory, AChainOfEqualValuesNeedsTwo) {
  Program p;
  uint16_t x = add_value(p, Slot::Step, 64, 0);
  for (int i = 0; i < 50; i++) {
    gimbal_op op{};
    op.inputs = 1, op.in[0] = x;
    op.outputs = 1, op.out[0] = x = add_value(p, Slot::Work, 1000, uint16_t(p.values.size()));
    p.ops.push_back(op);
  }
  ASSERT_TRUE(plan_work(p, kAlignment));
  EXPECT_EQ(p.slot_bytes[size_t(Slot::Work)], 2 * align_up(1000, kAlignment));
  for (size_t i = 1; i < p.ops.size(); i++)
    EXPECT_NE(p.values[p.ops[i].out[0]].offset, p.values[p.ops[i].in[0]].offset)
        << "output over its own input";
}

// Two values that live together and are too large together, or one alone: sums of such sizes wrap around.
TEST(WorkMemory, MoreThanAnyDeviceHasIsAnError) {
  for (const uint64_t bytes : {uint64_t(1) << 59, (uint64_t(1) << 59) + 1, UINT64_MAX - 10}) {
    Program p;
    uint16_t x = add_value(p, Slot::Step, 64, 0);
    for (int i = 0; i < 3; i++) {
      gimbal_op op{};
      op.inputs = 1, op.in[0] = x;
      op.outputs = 1, op.out[0] = x = add_value(p, Slot::Work, bytes, uint16_t(p.values.size()));
      p.ops.push_back(op);
    }
    const auto planned = plan_work(p, kAlignment);
    if (bytes == uint64_t(1) << 59) {
      ASSERT_TRUE(planned) << "two at a time: exactly what a slot can have";
      EXPECT_EQ(p.slot_bytes[size_t(Slot::Work)], 2 * bytes);
      continue;
    }
    ASSERT_FALSE(planned) << bytes;
    EXPECT_EQ(planned.error().code, Code::OutOfMemory);
  }
}

TEST(WorkMemory, NothingNeedsNothing) {
  Program p;
  ASSERT_TRUE(plan_work(p, kAlignment));
  EXPECT_EQ(p.slot_bytes[size_t(Slot::Work)], 0u);
}

}  // namespace
}  // namespace gimbal
