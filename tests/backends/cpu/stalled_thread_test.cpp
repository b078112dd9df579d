// A worker that the system preempts in the middle of a chunk must not keep the others from going on: they
// compute the chunk again, and what the late worker comes back with is thrown away. Under ThreadSanitizer
// this also shows that what the late worker reads is not written by those who went on.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "backends/cpu/compiled_program.h"
#include "backends/cpu/kernel_abi.h"
#include "ops/op.h"

namespace gimbal::cpu {
namespace {

gimbal_value value(uint32_t slot, int32_t n, uint64_t offset = 0) {
  gimbal_value v{};
  v.slot = slot, v.rank = 2, v.offset = offset, v.bytes = uint64_t(n) * 4;
  v.dim[0] = n, v.dim[1] = v.dim[2] = v.dim[3] = 1;
  return v;
}
gimbal_op op(uint32_t kernel, std::initializer_list<uint16_t> in, uint16_t out) {
  gimbal_op o{};
  o.kind = uint16_t(OpKind::MatMul), o.kernel = uint16_t(kernel), o.outputs = 1, o.out[0] = out;
  for (uint16_t i : in) o.in[o.inputs++] = i;
  return o;
}
const float* input(const CpuTask& t, int i) { return reinterpret_cast<const float*>(t.x[i]); }
float* output(const CpuTask& t) { return reinterpret_cast<float*>(t.y); }
void sleep_for(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

// ---- one stall, in a place of the test's choice

constexpr int kItems = 514, kValues = 16 * kItems;

// What the kernels share with the test.
struct Scene {
  int64_t stalls_at = 0;             // the item whose first computation stalls
  bool until_others_went_on = true;  // and how long; else some time
  std::atomic<int> computed{0};      // how often that item was
  std::atomic<bool> went_on{false};  // the next level was computed
  std::atomic<int> late{0};          // stalled workers that came back after that
};
Scene* scene = nullptr;

CpuWork product_work(const CpuTask&) { return {kItems, 1e9}; }
bool stalls(int64_t begin, int64_t end) {
  if (scene->stalls_at < begin || end <= scene->stalls_at || scene->computed.fetch_add(1) != 0) return false;
  if (scene->until_others_went_on)
    while (!scene->went_on) std::this_thread::yield();
  else sleep_for(2000);
  if (scene->went_on) scene->late++;
  return true;
}
// A stalled worker reads its inputs only after the stall, and makes something else of them if it is late.
void compute(const CpuTask& t, int64_t begin, int64_t end, bool late) {
  for (int64_t i = 16 * begin; i < 16 * end; i++) output(t)[i] = (late ? -1.f : 2.f) * input(t, 1)[i];
}
bool late(bool stalled) { return stalled && scene->until_others_went_on; }
void product(const CpuTask& t, int64_t begin, int64_t end) {
  compute(t, begin, end, late(stalls(begin, end)));
}
void two_streams(const CpuTask& t, int64_t begin, const CpuTask& other, int64_t other_begin, int64_t items) {
  const bool stalled = stalls(begin, begin + items) || stalls(other_begin, other_begin + items);
  compute(t, begin, begin + items, late(stalled));
  compute(other, other_begin, other_begin + items, late(stalled));
}
CpuWork sum_work(const CpuTask&) { return {1, 1e9}; }
void sum(const CpuTask& t, int64_t, int64_t) {
  float total = 0;
  for (int i = 0; i < kValues; i++) total += input(t, 0)[i];
  output(t)[0] = total;
  scene->went_on = true;
}

// out = the sum of twice x: two levels, of which workers share the first.
struct TwoLevels {
  float x[kValues], y[kValues], out = 0;
  gimbal_buffer buffers[3] = {{reinterpret_cast<unsigned char*>(x), sizeof x},
                              {reinterpret_cast<unsigned char*>(y), sizeof y},
                              {reinterpret_cast<unsigned char*>(&out), sizeof out}};
  gimbal_buffer* slots[3] = {&buffers[0], &buffers[1], &buffers[2]};
  gimbal_value values[3] = {value(0, kValues), value(1, kValues), value(2, 1)};
  gimbal_op ops[2] = {op(0, {0, 0}, 1), op(1, {1}, 2)};
  CpuKernel table[2] = {{{}, product_work, product, 0, 1, 16}, {{}, sum_work, sum, 0}};
  explicit TwoLevels(bool in_two_streams) {
    if (in_two_streams) table[0].launch_two = two_streams;
  }
  gimbal_program program() const { return {values, 3, ops, 2}; }
};

// The item, and whether the product reads its range in two streams.
class StalledThread : public testing::TestWithParam<std::tuple<int64_t, bool>> {};

TEST_P(StalledThread, DoesNotStopTheOthers) {
  ThreadPool pool(2, true);
  TwoLevels two(std::get<1>(GetParam()));
  CompiledProgram compiled(two.program(), two.table, pool.size());
  for (uint64_t round = 0; round < 50; round++) {
    Scene now;
    now.stalls_at = std::get<0>(GetParam());
    scene = &now;
    float expected = 0;
    for (int i = 0; i < kValues; i++) two.x[i] = float((i + int(round)) % 17), expected += 2 * two.x[i];
    compiled.run(two.slots, 3, {1, 1}, pool);
    EXPECT_EQ(two.out, expected);
    for (int i = 0; i < kValues; i++) ASSERT_EQ(two.y[i], 2 * two.x[i]) << "value " << i;
    EXPECT_EQ(now.computed, 2) << "computations of the stalled item";
    EXPECT_EQ(now.late, 1);
    uint64_t counts[2];
    compiled.run_counts(counts, 2);
    EXPECT_EQ(counts[0], round + 1);
    EXPECT_EQ(counts[1], round + 1);
  }
}

// In the first worker's range, in the second's, and in the last chunk of each; of ranges of an odd number of
// items.
INSTANTIATE_TEST_SUITE_P(
    Items, StalledThread,
    testing::Combine(testing::Values(0, 128, 129, kItems / 2 - 1, kItems / 2, kItems - 1), testing::Bool()));

// The same program, but for the sum, which overwrites what the product reads: now no thread may continue.
TEST(StalledThread, IsWaitedForWhereItsInputsAreOverwritten) {
  for (bool in_two_streams : {false, true}) {
    ThreadPool pool(2, true);
    TwoLevels two(in_two_streams);
    two.values[2].slot = 0;  // over x[0]
    CompiledProgram compiled(two.program(), two.table, pool.size());
    for (int round = 0; round < 20; round++) {
      Scene now;
      now.stalls_at = 5, now.until_others_went_on = false;
      scene = &now;
      float expected = 0;
      for (int i = 0; i < kValues; i++) two.x[i] = float((i + round) % 17), expected += 2 * two.x[i];
      const float first = two.x[0];
      compiled.run(two.slots, 3, {1, 1}, pool);
      EXPECT_EQ(two.x[0], expected);
      EXPECT_EQ(two.y[0], 2 * first);
      EXPECT_EQ(now.computed, 1) << "computations of the stalled item";
      EXPECT_EQ(now.late, 0);
    }
  }
}

// ---- stalls anywhere, in many levels and steps

constexpr int kWidth = 16 * 60, kLevels = 12;
std::atomic<int> computed{0};  // items of products, all together

thread_local std::mt19937 randomness(unsigned(std::hash<std::thread::id>()(std::this_thread::get_id())));
void stall_sometimes() {
  switch (randomness() % 400) {
    case 0: return sleep_for(int(randomness() % 1000));
    case 1: return std::this_thread::yield();
    default: return;
  }
}

float mixed(const float* x, int64_t i) {
  return float((int(x[i]) + 3 * int(x[(7 * i + 5) % kWidth])) % 1009);
}
CpuWork mix_work(const CpuTask&) { return {kWidth / 16, 1e9}; }
void mix(const CpuTask& t, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; item++) {
    computed++;
    stall_sometimes();
    for (int64_t i = 16 * item; i < 16 * item + 16; i++) output(t)[i] = mixed(input(t, 0), i);
  }
}
void mix_two(const CpuTask& t, int64_t begin, const CpuTask& other, int64_t other_begin, int64_t items) {
  mix(t, begin, begin + items);
  mix(other, other_begin, other_begin + items);
}
// A small op between the levels that are shared, by the worker that was last.
CpuWork increment_work(const CpuTask&) { return {1, 10}; }
void increment(const CpuTask& t, int64_t, int64_t) {
  stall_sometimes();
  for (int i = 0; i < kWidth; i++) output(t)[i] = input(t, 0)[i] + 1;
}

// mix, increment, mix, increment ... with every value in a place of its own, or with two places in turn.
struct ManyLevels {
  std::vector<float> memory;
  gimbal_buffer buffer{}, *slots[1] = {&buffer};
  std::vector<gimbal_value> values;
  std::vector<gimbal_op> ops;
  CpuKernel table[3] = {{{}, mix_work, mix, 0, 1, 16},
                        {{}, mix_work, mix, 0, 1, 16, mix_two},
                        {{}, increment_work, increment, 1}};
  explicit ManyLevels(bool shares_memory) {
    for (int i = 0; i <= 2 * kLevels; i++)
      values.push_back(value(0, kWidth, uint64_t(shares_memory ? i % 2 : i) * kWidth * 4));
    for (int i = 0; i < 2 * kLevels; i++)
      ops.push_back(op(i % 2 ? 2 : i / 2 % 2, {uint16_t(i)}, uint16_t(i + 1)));
    memory.resize(values.size() * kWidth);
    buffer = {reinterpret_cast<unsigned char*>(memory.data()), 0};
  }
  gimbal_program program() const { return {values.data(), values.size(), ops.data(), ops.size()}; }
};

void many_steps(int threads, bool shares_memory) {
  ThreadPool pool(threads, true);  // spin, though there may be fewer cores: else nothing is computed again
  ManyLevels many(shares_memory);
  CompiledProgram compiled(many.program(), many.table, threads);
  constexpr int kSteps = 100;
  computed = 0;
  for (int step = 0; step < kSteps; step++) {
    std::vector<float> x(kWidth), next(kWidth);
    for (int i = 0; i < kWidth; i++) many.memory[size_t(i)] = x[size_t(i)] = float((i * 31 + step) % 1009);
    compiled.run(many.slots, 1, {1, 1}, pool);
    for (int level = 0; level < kLevels; level++) {
      for (int i = 0; i < kWidth; i++) next[size_t(i)] = mixed(x.data(), i) + 1;
      x.swap(next);
    }
    const float* out = many.memory.data() + many.values.back().offset / 4;
    ASSERT_TRUE(std::equal(x.begin(), x.end(), out)) << threads << " threads, step " << step;
  }
  const int once = kSteps * kLevels * kWidth / 16;
  if (shares_memory) EXPECT_EQ(computed, once);
  else EXPECT_GT(computed, once) << "nothing was computed again";
  uint64_t counts[2 * kLevels];
  compiled.run_counts(counts, std::size(counts));
  for (uint64_t n : counts) EXPECT_EQ(n, uint64_t(kSteps));
}

TEST(StalledThreads, AnywhereGiveTheSameValues) {
  for (int threads : {2, 3, 5}) many_steps(threads, false);
}
TEST(StalledThreads, AreWaitedForWhereValuesShareMemory) {
  for (int threads : {2, 5}) many_steps(threads, true);
}

}  // namespace
}  // namespace gimbal::cpu
