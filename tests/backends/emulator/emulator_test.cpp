// The emulator: the example kernels give what C++ gives, in every order of lanes; and each defect of the
// defective kernels is found, with the kernel, the array and the index in the message.
#include "backends/emulator/runtime.h"

#include <gtest/gtest.h>

#include "gpu/example_checks.h"
#include "gpu/probes.h"

namespace gimbal::gpu {

std::span<const KernelCode> example_emulator_modules();
std::span<const KernelCode> defect_emulator_modules();
std::span<const KernelCode> toy_emulator_modules();
std::span<const KernelCode> correction_emulator_modules();
std::span<const KernelCode> probe_emulator_modules();

namespace {

struct DefectParams {
  uint32_t count;
};

class Emulator : public testing::TestWithParam<emulator::Options> {};

TEST_P(Emulator, RunsTheExamples) {
  auto runtime = emulator::open(GetParam());
  check_examples(*runtime, example_emulator_modules());
  check_toy(*runtime, toy_emulator_modules());
}

INSTANTIATE_TEST_SUITE_P(Modes, Emulator,
                         testing::Values(emulator::Options{}, emulator::Options{.bounds = true},
                                         emulator::Options{.racecheck = true}, emulator::Options{.seed = 1},
                                         emulator::Options{.racecheck = true, .seed = 12345},
                                         emulator::Options{.subgroup = 4},
                                         emulator::Options{.racecheck = true, .subgroup = 8},
                                         emulator::Options{.seed = 1, .subgroup = 16},
                                         emulator::Options{.racecheck = true, .seed = 3, .subgroup = 32},
                                         emulator::Options{.racecheck = true, .subgroup = 64}));

// What targets use whose own FMA, division and root are not exact.
TEST(Corrections, AreExact) {
  auto runtime = emulator::open({});
  check_rounding(*runtime, correction_emulator_modules());
}

// The probe's tree is the dialect's, and finds lanes that exchange other values than they say.
TEST(Probes, SeeWhichLanesExchange) {
  for (uint64_t subgroup : {1, 4, 8, 16, 32, 64}) {
    auto runtime = emulator::open({.subgroup = subgroup});
    bool right = false, fused = false;
    ASSERT_FALSE(probe_lanes(*runtime, probe_emulator_modules(), &right));
    ASSERT_FALSE(probe_fma(*runtime, probe_emulator_modules(), &fused));
    EXPECT_TRUE(right) << subgroup;
    EXPECT_TRUE(fused);
  }
  // Takes the probe's place: its trees are of other lanes.
  std::vector<KernelCode> wrong(probe_emulator_modules().begin(), probe_emulator_modules().end());
  for (const KernelCode& k : defect_emulator_modules())
    if (k.name == "wrong_lanes") wrong[1].code = k.code;
  auto runtime = emulator::open({.subgroup = 8});
  bool right = true;
  ASSERT_FALSE(probe_lanes(*runtime, wrong, &right));
  EXPECT_FALSE(right);
}

std::string defect_of(std::string_view kernel, emulator::Options options) {
  auto runtime = emulator::open(options);
  TestDevice device(*runtime, defect_emulator_modules());
  std::vector<float> x(32);
  Buffer *in = device.buffer(x), *out = device.buffer(x);
  return device.run({device.launch(kernel, {{in, 0, 128}, {out, 0, 128}}, DefectParams{32}, 2)}).text;
}

TEST(EmulatorChecks, FindDefects) {
  const emulator::Options races{.racecheck = true}, bounds{.bounds = true};
  EXPECT_EQ(defect_of("sound", races), "");
  EXPECT_EQ(defect_of("copy", races), "");
  EXPECT_EQ(defect_of("missing_barrier", races),
            "kernel missing_barrier, group (0, 0, 0), lane 0: reads turned[0] of the shared memory, which no "
            "lane of this group has written");
  EXPECT_EQ(defect_of("read_before_written", bounds),
            "kernel read_before_written, group (0, 0, 0), lane 15: reads turned[15] of the shared memory, "
            "which no lane of this group has written");
  EXPECT_EQ(defect_of("outside_shared", bounds),
            "kernel outside_shared, group (0, 0, 0), lane 0: writes turned[16], but it has 16 words");
  EXPECT_EQ(defect_of("outside_read", bounds),
            "kernel outside_read, group (1, 0, 0), lane 15: reads x[32], but it has 32 words");
  EXPECT_EQ(defect_of("outside_write", bounds),
            "kernel outside_write, group (1, 0, 0), lane 15: writes y[32], but it has 32 words");
  EXPECT_EQ(defect_of("same_word", races),
            "kernel same_word, group (0, 0, 0), lane 1: race: writes y[0], which lane 0 of group (0, 0, 0) "
            "writes with nothing that orders "
            "the two (a barrier orders shared memory only)");
  EXPECT_NE(defect_of("neighbour", races).find("race: reads y[1], which lane 1 of group (0, 0, 0) writes"),
            std::string::npos);
  EXPECT_NE(defect_of("outside_private", bounds).find("writes private array[2], but it has 2 words"),
            std::string::npos);
  EXPECT_NE(defect_of("outside_table", bounds).find("reads table[2], but it has 2 words"), std::string::npos);
}

TEST(EmulatorChecks,
     FindRacesOverSharedMemory) {  // a write after the read: visible in the shuffled order too
  for (uint64_t seed = 1; seed < 20; seed++)
    EXPECT_NE(defect_of("missing_barrier", {.racecheck = true, .seed = seed}), "") << seed;
}

// A tree that not all lanes reach is found with and without sub-groups; that it orders shared memory, as it
// does without them only, may not be relied on.
TEST(EmulatorChecks, FindDefectsOfTrees) {
  for (bool checked : {false, true}) {
    EXPECT_EQ(defect_of("some_join", {.racecheck = checked}),
              "kernel some_join, group (0, 0, 0): lane 7 waits at the BARRIER of line 14, but lane 15 has "
              "returned: all lanes must pass it, or none");
    EXPECT_EQ(defect_of("some_join", {.racecheck = checked, .subgroup = 16}),
              "kernel some_join, group (0, 0, 0): lane 7 waits at the TREE of line 14, but lane 15 of its "
              "sub-group does not: all lanes must pass it, or none");
    EXPECT_EQ(
        defect_of("two_trees", {.racecheck = checked, .subgroup = 16}),
        "kernel two_trees, group (0, 0, 0): lane 15 waits at the TREE of line 19 and lane 0 at that of line "
        "17: all lanes must pass the same");
  }
  EXPECT_EQ(defect_of("no_order", {.racecheck = true}), "");
  EXPECT_NE(defect_of("no_order", {.racecheck = true, .subgroup = 16}).find("reads turned["),
            std::string::npos);
}

TEST(EmulatorChecks, FindUnevenBarriersInEveryMode) {
  for (bool checked : {false, true}) {
    EXPECT_EQ(defect_of("some_wait", {.racecheck = checked}),
              "kernel some_wait, group (0, 0, 0): lane 7 waits at the BARRIER of line 18, but lane 15 has "
              "returned: all lanes must pass it, "
              "or none");
    EXPECT_EQ(defect_of("two_barriers", {.racecheck = checked}),
              "kernel two_barriers, group (0, 0, 0): lane 0 waits at the BARRIER of line 21 and lane 8 at "
              "that of line 23: all lanes must "
              "pass the same");
  }
}

// Two launches of which one reads what the other writes: right with after_all, a defect of the engine
// without.
TEST(EmulatorChecks, FindLaunchesThatNothingOrders) {
  for (bool ordered : {true, false}) {
    auto runtime = emulator::open({.racecheck = true});
    TestDevice device(*runtime, defect_emulator_modules());
    std::vector<float> x(32);
    Buffer *a = device.buffer(x), *b = device.buffer(x), *c = device.buffer(x);
    Launch first = device.launch("copy", {{a, 0, 128}, {b, 0, 128}}, DefectParams{32}, 2);
    Launch second = device.launch("sound", {{b, 0, 128}, {c, 0, 128}}, DefectParams{32}, 2);
    second.after_all = ordered;
    EXPECT_EQ(device.run({first, second}).text,
              ordered ? ""
                      : "kernel sound, group (0, 0, 0), lane 0: race: reads x[0], which lane 0 of group (0, "
                        "0, 0) of kernel copy, launched "
                        "before without after_all between them, writes with nothing that orders the two (a "
                        "barrier orders shared memory only)");
  }
}

TEST(EmulatorOrder, ShowsKernelsThatDependOnIt) {
  std::vector<float> last;
  for (uint64_t seed : {0, 1, 2, 3, 3}) {
    auto runtime = emulator::open({.seed = seed});
    TestDevice device(*runtime, defect_emulator_modules());
    std::vector<float> x(32);
    for (size_t i = 0; i < 32; i++) x[i] = float(i);
    Buffer *in = device.buffer(x), *out = device.buffer(x);
    ASSERT_FALSE(
        device.run({device.launch("order_dependent", {{in, 0, 128}, {out, 0, 128}}, DefectParams{32}, 2)}));
    last.push_back(device.contents<float>(out, 1)[0]);
  }
  EXPECT_EQ(last[0], 31.f);
  EXPECT_EQ(last[3], last[4]);  // the same seed, the same order
  EXPECT_FALSE(last[0] == last[1] && last[1] == last[2] && last[2] == last[3]);
}

TEST(EmulatorRuntime, RefusesWhatGpusRefuse) {
  auto runtime = emulator::open({.memory = 1 << 20});
  TestDevice device(*runtime, defect_emulator_modules());
  std::vector<float> x(128);
  Buffer* b = device.buffer(x);
  Buffer* large = nullptr;
  EXPECT_EQ(runtime->allocate(1 << 20, &large).code, Failure::OutOfMemory);
  auto with = [&](Binding first, uint32_t groups) {
    return device.run({device.launch("copy", {first, {b, 256, 128}}, DefectParams{32}, groups)});
  };
  EXPECT_FALSE(with({b, 0, 128}, 2));
  EXPECT_EQ(with({b, 64, 128}, 2).code, Failure::Invalid);
  EXPECT_EQ(with({b, 256, 512}, 2).code, Failure::Invalid);
  EXPECT_EQ(with({b, 0, 126}, 2).code, Failure::Invalid);
  EXPECT_EQ(with({nullptr, 0, 128}, 2).code, Failure::Invalid);
  EXPECT_EQ(with({b, 0, 128}, 0).code, Failure::Invalid);
  EXPECT_EQ(with({b, 0, 128}, 65536).code, Failure::Invalid);
}

}  // namespace
}  // namespace gimbal::gpu
