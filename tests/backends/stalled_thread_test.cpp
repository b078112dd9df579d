// A thread that the system puts aside in the middle of its share must not keep the others from going on: they
// do the share a second time, and what the late thread comes back with is thrown away.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backends/cpu/compiled.h"
#include "backends/cpu/kernel_abi.h"
#include "ops/op.h"

namespace gimbal::cpu {
namespace {

constexpr int kUnits = 514, kValues = 16 * kUnits;

// What the kernels of this test share with it.
struct Scene {
  int64_t stalls_at = 0;             // the unit whose first computation stalls
  std::atomic<int> first{0};         // computations of that unit
  std::atomic<bool> went_on{false};  // the next phase was computed
  std::atomic<int> late{0};          // stalled threads that came back after that
};
Scene* scene = nullptr;

CpuWork product_work(const CpuTask&) { return {kUnits, 1e9}; }
// Who computes the unit first waits until others have done what comes after: forever, if they wait for it.
bool stalls(int64_t begin, int64_t end) {
  if (scene->stalls_at < begin || end <= scene->stalls_at || scene->first.fetch_add(1) != 0) return false;
  while (!scene->went_on) std::this_thread::yield();
  scene->late++;
  return true;
}
void compute(const CpuTask& t, int64_t begin, int64_t end, bool stalled) {
  for (int64_t i = 16 * begin; i < 16 * end; i++)
    reinterpret_cast<float*>(t.y)[i] = stalled ? -1.f : 2 * reinterpret_cast<const float*>(t.x[1])[i];
}
void product(const CpuTask& t, int64_t begin, int64_t end) { compute(t, begin, end, stalls(begin, end)); }
void two_streams(const CpuTask& t, int64_t begin, const CpuTask& other, int64_t other_begin, int64_t units) {
  const bool stalled = stalls(begin, begin + units) || stalls(other_begin, other_begin + units);
  compute(t, begin, begin + units, stalled);
  compute(other, other_begin, other_begin + units, stalled);
}
CpuWork sum_work(const CpuTask&) { return {1, 1e9}; }
void sum(const CpuTask& t, int64_t, int64_t) {
  float total = 0;
  for (int i = 0; i < kValues; i++) total += reinterpret_cast<const float*>(t.x[0])[i];
  *reinterpret_cast<float*>(t.y) = total;
  scene->went_on = true;
}

// out = the sum of twice x: two phases, of which threads share the first.
struct TwoPhases {
  float x[kValues], y[kValues], out = 0;
  gimbal_buffer buffers[3] = {{reinterpret_cast<unsigned char*>(x), sizeof x},
                              {reinterpret_cast<unsigned char*>(y), sizeof y},
                              {reinterpret_cast<unsigned char*>(&out), sizeof out}};
  gimbal_value values[3] = {value(0, kValues), value(1, kValues), value(2, 1)};
  gimbal_op ops[2] = {op(OpKind::MatMul, 0, {0, 0}, 1), op(OpKind::Add, 1, {1}, 2)};
  CpuKernel table[2] = {{{}, product_work, product, 0, 1, 16}, {{}, sum_work, sum, 0}};
  explicit TwoPhases(bool in_two_streams) {
    if (in_two_streams) table[0].launch_two = two_streams;
  }

  static gimbal_value value(uint8_t slot, int32_t n) {
    gimbal_value v{};
    v.slot = slot, v.rank = 2, v.bytes = uint64_t(n) * 4;
    v.dim[0] = n, v.dim[1] = v.dim[2] = v.dim[3] = 1;
    return v;
  }
  static gimbal_op op(OpKind kind, uint32_t kernel, std::initializer_list<uint32_t> in, uint32_t out) {
    gimbal_op o{};
    o.kind = uint16_t(kind), o.kernel = kernel, o.out = out;
    for (uint32_t i : in) o.in[o.inputs++] = i;
    return o;
  }
  gimbal_program program() const {
    gimbal_program p{};
    p.values = values, p.n_values = 3, p.ops = ops, p.n_ops = 2;
    return p;
  }
};

// The unit, and whether the product goes through its part in two streams.
class StalledThread : public testing::TestWithParam<std::tuple<int64_t, bool>> {};

TEST_P(StalledThread, DoesNotStopTheOthers) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "shares are computed once under ThreadSanitizer (see compiled.cpp)";
#endif
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "threads without a core each wait for one another";
  Team team(2);
  TwoPhases two(std::get<1>(GetParam()));
  Compiled compiled(two.program(), two.table, team.size());
  gimbal_buffer* slots[3] = {&two.buffers[0], &two.buffers[1], &two.buffers[2]};
  uint64_t steps = 0;
  for (int round = 0; round < 50; round++) {
    Scene now;
    now.stalls_at = std::get<0>(GetParam());
    scene = &now;
    float expected = 0;
    for (int i = 0; i < kValues; i++) two.x[i] = float((i + round) % 17), expected += 2 * two.x[i];
    compiled.run(slots, 3, {1, 1}, team);
    steps++;
    EXPECT_EQ(two.out, expected);
    for (int i = 0; i < kValues; i++) ASSERT_EQ(two.y[i], 2 * two.x[i]) << "value " << i;
    EXPECT_EQ(now.first, 2) << "computations of the stalled unit";
    EXPECT_EQ(now.late, 1);
    uint64_t counts[2];
    compiled.run_counts(counts, 2);
    EXPECT_EQ(counts[0], steps);
    EXPECT_EQ(counts[1], steps);
  }
}

// In the first member's part, in the second's, and in the last share of each; of parts of an odd number of
// units.
INSTANTIATE_TEST_SUITE_P(
    Units, StalledThread,
    testing::Combine(testing::Values(0, 128, 129, kUnits / 2 - 1, kUnits / 2, kUnits - 1), testing::Bool()));

}  // namespace
}  // namespace gimbal::cpu
