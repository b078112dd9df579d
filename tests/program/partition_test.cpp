// Programs divided into stages compute what the whole computes: also with values that skip a part, views that
// cross from one to the next, and weights and caches that lie where they are used.
#include "program/partition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "program/builder.h"
#include "program/place.h"
#include "support/fake_backend.h"
#include "support/placed.h"

namespace gimbal::test {
namespace {

constexpr int kRows = 4, kWidth = 32;

struct Recorded {
  Program program;
  Value input;
};

// A chain of random sums, products with numbers and norms, in which any earlier value may be used again.
Recorded random_program(const Device& d, std::mt19937& r, int ops) {
  ProgramBuilder p(d, kRows, 1);
  Value in = p.rows_input("in", DType::F32, kWidth);
  Value w = p.vector("w", kWidth);
  std::vector<Value> all = {p.scale(in, 1)};
  auto any = [&] { return all[r() % all.size()]; };
  for (int i = 0; i < ops; i++) {
    p.layer(i);
    Value x = any();
    switch (r() % 4) {
      case 0: x = p.scale(x, 0.5f + float(r() % 8) / 8); break;
      case 1: x = p.rms_norm(x, w, 1e-5f); break;
      case 2: x = p.join_heads(p.split_heads(x, 8)); break;  // a view of a view
      default: x = p.add(x, any());
    }
    all.push_back(p.add(x, all.back()));
  }
  p.output(all.back());
  auto done = std::move(p).finish();
  EXPECT_TRUE(done) << done.error().message;
  return {std::move(*done), in};
}

// Runs stages as a session does, part by part, and gives the rows of the last op.
std::vector<float> run(const Device& d, std::vector<StageProgram> stages, const std::vector<float>& in,
                       int rows) {
  const gimbal_step step{rows, 0};
  std::vector<std::array<Buffer, kSlots>> buffers(stages.size());
  size_t turns = 0;
  for (size_t i = 0; i < stages.size(); i++) {
    Program& p = stages[i].program;
    EXPECT_TRUE(assign_kernels(p, d, {}));
    for (size_t s = 0; s < kSlots; s++) buffers[i][s] = std::move(*d.allocate(p.slot_bytes[s]));
    for (uint16_t id : p.weights) {
      std::vector<float> w(kWidth);
      for (int k = 0; k < kWidth; k++) w[size_t(k)] = 1 + float(k) / 64;
      EXPECT_TRUE(d.write(buffers[i][0], p.values[id].offset, w.data(), w.size() * 4));
    }
    EXPECT_TRUE(d.write(buffers[i][size_t(Slot::Step)], 0, in.data(), size_t(rows) * kWidth * 4));
    turns += stages[i].parts.size();
  }
  for (size_t turn = 0; turn < turns; turn++)
    for (size_t i = 0; i < stages.size(); i++)
      for (const StagePart& part : stages[i].parts) {
        if (part.turn != turn) continue;
        for (const Transfer& h : part.in) {
          EXPECT_NE(h.from, i);
          EXPECT_EQ(h.row_bytes, kWidth * 4u);
          EXPECT_GE(h.write_offset, stages[i].step_bytes);
          EXPECT_GE(h.read_offset, stages[h.from].output_bytes);
          std::vector<char> moved(h.row_bytes * uint64_t(h.moved(step)));
          EXPECT_TRUE(
              d.read(buffers[h.from][size_t(Slot::Output)], h.read_offset, moved.data(), moved.size()));
          EXPECT_TRUE(d.write(buffers[i][size_t(Slot::Step)], h.write_offset, moved.data(), moved.size()));
        }
        auto e = d.compile(part_of(stages[i].program, part.ops));
        EXPECT_TRUE(e) << e.error().message;
        gimbal_buffer* slots[kSlots];
        for (size_t s = 0; s < kSlots; s++) slots[s] = buffers[i][s].handle();
        EXPECT_TRUE(d.submit(*e, slots, kSlots, step));
        EXPECT_TRUE(d.wait());
      }
  const Program& p = stages.back().program;
  const gimbal_value& last = p.values[p.ops.back().out[0]];
  EXPECT_EQ(last.slot, uint32_t(Slot::Output));
  std::vector<float> out(size_t(rows) * kWidth);
  EXPECT_TRUE(d.read(buffers.back()[size_t(Slot::Output)], last.offset, out.data(), out.size() * 4));
  return out;
}

// Random programs, divided into four stages by `stage_of_op`, against the whole.
struct Counts {
  size_t transfers = 0, skipping = 0, back = 0;
  uint64_t shared = 0;  // bytes of transferred values that lie where others lay before
};
Counts compare_stages(unsigned seed, const std::function<size_t(std::mt19937&, size_t last)>& stage_of_op) {
  const auto d = open_one("cpu", 0, "threads=1");
  std::mt19937 r(seed);
  Counts counts;
  for (int round = 0; round < 60; round++) {
    const Recorded whole = random_program(*d, r, 12);
    std::vector<float> in(kRows * kWidth);
    for (float& x : in) x = float(int(r() % 2001) - 1000) / 500;
    const int rows = 1 + int(r() % kRows);
    const std::vector<size_t> all(whole.program.ops.size(), 0);
    const Device* one[] = {d.get()};
    const auto want = run(*d, *partition(whole.program, {all}, one), in, rows);
    EXPECT_EQ(want.size(), size_t(rows) * kWidth);
    EXPECT_TRUE(std::isfinite(want[0]));

    std::vector<size_t> stage;
    for (size_t i = 0; i < whole.program.ops.size(); i++)
      stage.push_back(stage_of_op(r, stage.empty() ? 0 : stage.back()));
    stage.back() = 3;  // the output is in the last one
    const Device* four[] = {d.get(), d.get(), d.get(), d.get()};
    auto stages = partition(whole.program, {stage}, four);
    if (!stages) {
      ADD_FAILURE() << stages.error().message;
      break;
    }
    size_t ops = 0;
    for (size_t i = 0; i < stages->size(); i++) {
      const StageProgram& s = (*stages)[i];
      ops += s.program.ops.size();
      EXPECT_EQ(s.step_bytes, whole.program.slot_bytes[size_t(Slot::Step)]);
      EXPECT_EQ(s.program.layer.size(), s.program.ops.size());
      uint64_t passed = 0;
      for (const StagePart& part : s.parts)
        for (const Transfer& h : part.in) {
          counts.transfers++, counts.skipping += h.from + 1 < i, counts.back += h.from > i;
          passed += kRows * kWidth * 4;
        }
      const uint64_t taken = s.program.slot_bytes[size_t(Slot::Step)] - s.step_bytes;
      EXPECT_LE(taken, passed);
      counts.shared += passed - taken;
    }
    EXPECT_EQ(ops, whole.program.ops.size()) << "every op once";
    EXPECT_EQ(stages->back().output_bytes, whole.program.slot_bytes[size_t(Slot::Output)]);
    EXPECT_EQ(bits_differ(want, run(*d, std::move(*stages), in, rows)), "") << "round " << round;
  }
  return counts;
}

TEST(Partition, StagesInTheOrderOfTheOpsComputeWhatTheWholeDoes) {
  const Counts c =
      compare_stages(3, [](std::mt19937& r, size_t last) { return std::min<size_t>(3, last + r() % 5 / 4); });
  EXPECT_GT(c.transfers, 100u);
  EXPECT_GT(c.skipping, 20u) << "no value skipped a part: the test tests less than it says";
  EXPECT_EQ(c.back, 0u);
}

TEST(Partition, StagesInAnyOrderComputeWhatTheWholeDoes) {
  const Counts c = compare_stages(13, [](std::mt19937& r, size_t) { return r() % 4; });
  EXPECT_GT(c.transfers, 1000u);
  EXPECT_GT(c.back, 300u);
  EXPECT_GT(c.shared, 0u) << "no two values shared memory";
}

TEST(Partition, ResultsAreInTheLastStageAndStagesExist) {
  const auto d = open_one("cpu", 0, "threads=1");
  std::mt19937 r(4);
  const Recorded whole = random_program(*d, r, 3);
  std::vector<size_t> part(whole.program.ops.size(), 1);
  part.back() = 0;
  const Device* two[] = {d.get(), d.get()};
  auto no = partition(whole.program, {part}, two);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::Unsupported) << no.error().message;
  part.assign(part.size(), 7);
  no = partition(whole.program, {part}, two);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::Failed);
}

TEST(Partition, APartLargerThanAnyDeviceIsRefused) {
  const auto d = open_one("cpu", 0, "threads=1");
  std::mt19937 r(5);
  Recorded whole = random_program(*d, r, 3);
  whole.program.values[whole.input.id].bytes = uint64_t(1) << 61;
  const std::vector<size_t> part(whole.program.ops.size(), 0);
  const Device* one[] = {d.get()};
  auto no = partition(whole.program, {part}, one);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::OutOfMemory);
  EXPECT_EQ(no.error().message.find("the part of the model for device cpu:0: 'in' (f32[32, 4]) needs "), 0u)
      << no.error().message;
}

// A matrix in the layout of the device that holds it: packed on the fake one, dense on the other.
TEST(Partition, WeightsAreLaidOutForTheirDevice) {
  FakeSettings settings;
  settings.packs = set_of(DType::F32);
  const auto packing = open_fake(settings);
  ProgramBuilder p(*packing, kRows, 1);
  Value x = p.rows_input("in", DType::F32, kWidth), w = p.matrix("w", Shape(DType::F32, {kWidth, kWidth}));
  p.layer(0);
  x = p.linear(w, x);
  p.layer(1);
  p.output(p.linear(w, x));
  const Program whole = *std::move(p).finish();
  const std::vector<size_t> part = {0, 1};
  const auto cpu = open_one("cpu", 0, "threads=1");
  const Device* devices[] = {packing.get(), cpu.get()};
  auto parts = partition(whole, {part}, devices);
  ASSERT_TRUE(parts);
  for (size_t i = 0; i < 2; i++) {
    const Program& program = (*parts)[i].program;
    ASSERT_EQ(program.weights.size(), 1u) << "the weight that both use lies in both";
    const gimbal_value& v = program.values[program.weights[0]];
    EXPECT_EQ(program.info[program.weights[0]].name, "w");
    const auto packed = devices[i]->packed_bytes(Shape(DType::F32, {kWidth, kWidth}));
    EXPECT_EQ(v.layout, packed ? GIMBAL_PACKED : GIMBAL_DENSE);
    EXPECT_EQ(v.bytes, packed.value_or(kWidth * kWidth * 4));
  }
  EXPECT_EQ((*parts)[0].program.values[(*parts)[0].program.weights[0]].bytes, 1000u * kWidth);
}

// Two products of one value on two devices: the quantized value does not cross, both devices quantize.
TEST(Partition, AQuantizationIsComputedWhereItIsRead) {
  const auto d = open_one("cpu", 0, "threads=1");
  ProgramBuilder p(*d, kRows, 1);
  const Value x = p.rows_input("in", DType::F32, kWidth);
  const auto matrix = [&](const char* name) { return p.matrix(name, Shape(DType::Q8_0, {kWidth, kWidth})); };
  const Value h = p.scale(x, 2);
  const Value a = p.linear(matrix("a"), h), b = p.linear(matrix("b"), h);
  p.output(p.add(a, b));
  const Program whole = *std::move(p).finish();
  std::vector<size_t> stage;
  for (const gimbal_op& op : whole.ops) stage.push_back(whole.output(op).name == "b" ? 0 : 1);
  const Device* two[] = {d.get(), d.get()};
  auto stages = partition(whole, {stage}, two);
  ASSERT_TRUE(stages) << stages.error().message;
  for (const StageProgram& s : *stages) {
    EXPECT_EQ(std::count_if(s.program.ops.begin(), s.program.ops.end(),
                            [](const gimbal_op& op) { return OpKind(op.kind) == OpKind::Quantize; }),
              1);
    for (const StagePart& part : s.parts)
      for (const Transfer& t : part.in) EXPECT_EQ(t.row_bytes, kWidth * 4u) << "as f32";
  }
}

}  // namespace
}  // namespace gimbal::test
