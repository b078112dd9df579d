// The Metal runtime: the example kernels, and, on the pretended Metal, what it asks of the system and what it
// makes of every "no".
#define TESTED_BACKEND "metal"
#include "backends/metal/backend.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "backends/metal/fake/control.h"
#include "gpu/device_main.h"
#include "gpu/example_checks.h"

namespace gimbal::gpu {
std::span<const KernelCode> example_msl_modules();
std::span<const KernelCode> rounding_msl_modules();
}  // namespace gimbal::gpu

namespace gimbal::metal {
namespace {

using gpu::Failure, gpu::Launch, gpu::Runtime, gpu::ScaledSumParams;
using test::PretendedMetal, test::pretended_metal;

std::unique_ptr<Runtime> opened(const Options& o = {}, int index = 0) {
  std::unique_ptr<Runtime> runtime;
  const Failure f = open(index, o, &runtime);
  EXPECT_FALSE(f) << f.text;
  return runtime;
}

// Nothing that Metal forbids is done, and nothing is left.
class MetalRuntime : public testing::Test {
 protected:
  void SetUp() override { pretended_metal() = {}; }
  void TearDown() override {
    EXPECT_EQ(pretended_metal().complaint, "");
    EXPECT_EQ(pretended_metal().objects, 0);
    EXPECT_EQ(pretended_metal().allocated, 0u);
  }
};

struct Mode {
  const char* name;
  bool unified, staging, knows_math_mode;
  uint64_t seed;
};
class MetalModes : public MetalRuntime, public testing::WithParamInterface<Mode> {};

TEST_P(MetalModes, RunTheExamples) {
  pretended_metal().unified = GetParam().unified;
  pretended_metal().knows_math_mode = GetParam().knows_math_mode;
  pretended_metal().seed = GetParam().seed;
  auto runtime = opened({.staging = GetParam().staging});
  ASSERT_TRUE(runtime);
  gpu::check_examples(*runtime, gpu::example_msl_modules());
  gpu::check_rounding(*runtime, gpu::rounding_msl_modules());
  const bool card = !GetParam().unified || GetParam().staging;
  EXPECT_EQ(pretended_metal().copies > 0, card);
}
INSTANTIATE_TEST_SUITE_P(All, MetalModes,
                         testing::Values(Mode{"Unified", true, false, true, 0},
                                         Mode{"Staging", true, true, true, 1},
                                         Mode{"CardBeforeMacos15", false, false, false, 2}),
                         [](auto& p) { return p.param.name; });

TEST_F(MetalRuntime, TellsTheFactsOfTheDevice) {
  pretended_metal().devices = 2;
  EXPECT_EQ(device_count(), 2);
  auto runtime = opened({}, 1);
  ASSERT_TRUE(runtime);
  const gpu::Facts& f = runtime->facts();
  EXPECT_EQ(f.name, "Pretended M1");  // behind the system's default
  EXPECT_EQ(f.driver, "Metal of Version 15.0 (pretended)");
  EXPECT_EQ(f.memory_total, 1u << 30);
  EXPECT_EQ(f.memory_free, 1u << 30);
  EXPECT_EQ(f.max_binding_bytes, 256u << 20);
  EXPECT_EQ(f.binding_alignment, 4u);
  EXPECT_TRUE(f.unified_memory);
  EXPECT_FALSE(f.software);
  gpu::Buffer* b = nullptr;
  ASSERT_FALSE(runtime->allocate(1001, &b));
  EXPECT_EQ(runtime->facts().memory_free, (1u << 30) - 1004u);
  runtime->release(b);
  EXPECT_EQ(runtime->facts().memory_free, 1u << 30);
  pretended_metal().piece = uint64_t(1) << 40;
  EXPECT_EQ(opened()->facts().max_binding_bytes, uint64_t(4) << 30);
}

// -0 * 1 + -0 is -0, which spirv-cross by itself does not keep: see exact() in scripts/build/gpu_modules.py.
TEST_F(MetalRuntime, KeepsTheSignOfZero) {
  auto runtime = opened();
  ASSERT_TRUE(runtime);
  gpu::TestDevice device(*runtime, gpu::example_msl_modules());
  const uint32_t n = 32, words = gpu::EveryFunction::kWords;
  gpu::Buffer* zeros = device.buffer(std::vector<float>(n, -0.f));
  gpu::Buffer* y = device.buffer(std::vector<uint32_t>(n * words));
  ASSERT_FALSE(device.run({device.launch("every_function",
                                         {{zeros, 0, n * 4},
                                          {device.buffer(std::vector<float>(n, 1.f)), 0, n * 4},
                                          {zeros, 0, n * 4},
                                          {device.buffer(std::vector<uint32_t>(n)), 0, n * 4},
                                          {y, 0, n * words * 4}},
                                         gpu::EveryFunctionParams{0, n}, 1)}));
  const auto got = device.contents<uint32_t>(y, n * words);
  for (uint32_t i = 0; i < n; i++) EXPECT_EQ(got[i * words + 1], 0x80000000u) << i;
}

// One command buffer for each replay; a barrier only where the engine asks for one.
TEST_F(MetalRuntime, AsksForBarriersWhereTheyAreNeeded) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    pretended_metal().seed = seed;
    auto runtime = opened();
    ASSERT_TRUE(runtime);
    gpu::TestDevice device(*runtime, gpu::example_msl_modules());
    const uint32_t n = 640;
    gpu::Buffer *a = device.buffer(std::vector<float>(n, 1.f)), *b = device.buffer(std::vector<float>(n)),
                *c = device.buffer(std::vector<float>(n)), *d = device.buffer(std::vector<float>(n));
    auto step = [&](gpu::Buffer* from, gpu::Buffer* to, float plus) {
      return device.launch("scaled_sum", {{from, 0, n * 4}, {to, 0, n * 4}}, ScaledSumParams{0, 0, n, plus},
                           n / 64);
    };
    std::vector<Launch> all = {step(a, b, 1.f), step(a, c, 2.f), step(b, a, -5.f), step(c, d, 0.f)};
    all[1].after_all = all[3].after_all = false;
    gpu::Recording* r = nullptr;
    ASSERT_FALSE(runtime->record(all, &r));
    pretended_metal().barriers = pretended_metal().commands = pretended_metal().dispatches = 0;
    float want = 1.f, last = 0;
    for (int i = 0; i < 6; i++) {
      ASSERT_FALSE(runtime->replay(r));
      last = 2.f * (2.f * want + 2.f), want = 2.f * (2.f * want + 1.f) - 5.f;
    }
    EXPECT_EQ(pretended_metal().dispatches, 0);  // no caller has waited
    for (float v : device.contents<float>(a, n)) ASSERT_EQ(v, want);
    for (float v : device.contents<float>(d, n)) ASSERT_EQ(v, last);
    EXPECT_EQ(pretended_metal().barriers, 6);
    EXPECT_EQ(pretended_metal().commands, 6);
    EXPECT_EQ(pretended_metal().dispatches, 24);
    runtime->discard(r);
  }
}

// The barrier is what makes it right: without it, the pretended Metal shows a wrong result.
TEST_F(MetalRuntime, AWrongOrderShows) {
  auto runtime = opened();
  ASSERT_TRUE(runtime);
  gpu::TestDevice device(*runtime, gpu::example_msl_modules());
  gpu::Buffer *a = device.buffer(std::vector<float>(64, 1.f)), *b = device.buffer(std::vector<float>(64));
  auto step = [&](gpu::Buffer* from, gpu::Buffer* to) {
    return device.launch("scaled_sum", {{from, 0, 256}, {to, 0, 256}}, ScaledSumParams{0, 0, 64, 1.f}, 1);
  };
  std::vector<Launch> all = {step(a, b), step(b, a)};
  all[1].after_all = false;
  ASSERT_FALSE(device.run(all));
  EXPECT_EQ(device.contents<float>(a, 1)[0], 1.f);  // 2 * 0 + 1, not 2 * 3 + 1
}

TEST_F(MetalRuntime, CopiesAnyBytesOfACard) {
  pretended_metal().unified = false;
  auto runtime = opened();
  ASSERT_TRUE(runtime);
  const uint64_t n = (9u << 20) + 3;  // more than the ring
  std::vector<uint8_t> want(n), got(n);
  gpu::Buffer* b = nullptr;
  ASSERT_FALSE(runtime->allocate(n, &b));
  std::mt19937 random(3);
  for (auto& byte : want) byte = uint8_t(random());
  ASSERT_FALSE(runtime->write(b, 0, want.data(), n));
  for (auto [offset, bytes] : {std::pair<uint64_t, uint64_t>{1, 1},
                               {2, 5},
                               {4, 8},
                               {(2u << 20) - 1, 3},
                               {n - 1, 1},
                               {7, 5u << 20},
                               {0, 0}}) {
    std::vector<uint8_t> part(bytes);
    for (auto& byte : part) byte = uint8_t(random());
    std::copy(part.begin(), part.end(), want.begin() + long(offset));
    ASSERT_FALSE(runtime->write(b, offset, part.data(), bytes));
    std::fill(part.begin(), part.end(), 0);
    ASSERT_FALSE(runtime->read(b, offset, part.data(), bytes));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), want.begin() + long(offset))) << offset << " " << bytes;
  }
  ASSERT_FALSE(runtime->read(b, 0, got.data(), n));
  EXPECT_EQ(got, want);
  runtime->release(b);
}

// ---- every "no"

void expect_refused(int index, std::vector<const char*> words) {
  std::unique_ptr<Runtime> runtime;
  const Failure f = open(index, {}, &runtime);
  EXPECT_NE(f.code, Failure::None);
  EXPECT_EQ(runtime, nullptr);
  for (const char* word : words) EXPECT_NE(f.text.find(word), std::string::npos) << f.text;
}

TEST_F(MetalRuntime, RefusesDevicesThatAreNotThereOrTooSmall) {
  expect_refused(5, {"no Metal device 5", "there are 1"});
  pretended_metal().lanes = 128;
  expect_refused(0, {"Pretended M1", "128 lanes", "256"});
  pretended_metal().lanes = 1024, pretended_metal().group_memory = 8192;
  expect_refused(0, {"8192 shared bytes", "16384"});
  pretended_metal().group_memory = 32768, pretended_metal().no_queue = true;
  expect_refused(0, {"no command queue"});
  pretended_metal() = {}, pretended_metal().devices = 0;
  EXPECT_EQ(device_count(), 0);
  expect_refused(0, {"no GPU that Metal can use\n"});
}

TEST_F(MetalRuntime, RefusesTextsThatDoNotCompile) {
  auto runtime = opened();
  ASSERT_TRUE(runtime);
  const gpu::KernelCode good = gpu::example_msl_modules()[0];
  auto refused = [&](const gpu::KernelCode& code, std::vector<const char*> words) {
    gpu::Kernel* k = nullptr;
    const Failure f = runtime->load(code, &k);
    EXPECT_EQ(f.code, Failure::Unsupported);
    EXPECT_NE(f.text.find(std::string("kernel ") + std::string(good.name)), std::string::npos) << f.text;
    for (const char* word : words) EXPECT_NE(f.text.find(word), std::string::npos) << f.text;
  };
  gpu::KernelCode wrong = good;
  wrong.code = wrong.code.subspan(1);
  refused(wrong, {"does not compile", "unknown type name", "MTLLibraryErrorDomain, code 3"});
  pretended_metal().no_function = true;
  refused(good, {"newFunctionWithName"});
  pretended_metal().no_function = false, pretended_metal().no_pipelines = true;
  refused(good, {"no pipeline", "internal error"});
  pretended_metal().no_pipelines = false, pretended_metal().pipeline_lanes = 8;
  refused(good, {"lanes", "can hold 8"});
  pretended_metal().pipeline_lanes = 1024;
  gpu::Kernel *first = nullptr, *again = nullptr;
  ASSERT_FALSE(runtime->load(good, &first));
  const int compiled = pretended_metal().compiled;
  ASSERT_FALSE(runtime->load(good, &again));
  EXPECT_EQ(first, again);
  EXPECT_EQ(pretended_metal().compiled, compiled);
}

TEST_F(MetalRuntime, RefusesMemoryThatIsNotThere) {
  auto runtime = opened();
  ASSERT_TRUE(runtime);
  auto refused = [&](uint64_t bytes, std::vector<const char*> words) {
    gpu::Buffer* b = nullptr;
    const Failure f = runtime->allocate(bytes, &b);
    EXPECT_EQ(f.code, Failure::OutOfMemory);
    EXPECT_EQ(b, nullptr);
    for (const char* word : words) EXPECT_NE(f.text.find(word), std::string::npos) << f.text;
  };
  refused((256u << 20) + 1, {"268435457", "at most 268435456"});
  pretended_metal().memory = 1000;
  refused(1001, {"1001 bytes", "1000 of 1000 are free"});
  pretended_metal() = {}, pretended_metal().objects = 2;  // the device and its queue
  pretended_metal().no_buffers = true;
  refused(64, {"refuses a buffer"});
  pretended_metal().no_buffers = false;
  gpu::Buffer* b = nullptr;
  ASSERT_FALSE(runtime->allocate(64, &b));
  runtime->release(b);
}

// Also where the host reaches the memory: who gets a buffer has seen the queue work.
TEST_F(MetalRuntime, ClearsMemoryByItsQueue) {
  for (bool unified : {true, false}) {
    pretended_metal() = {};
    pretended_metal().unified = unified;
    auto runtime = opened();
    ASSERT_TRUE(runtime);
    pretended_metal().fail_at = 0, pretended_metal().fail_code = 1;
    gpu::Buffer* b = nullptr;
    EXPECT_EQ(runtime->allocate(256, &b).code, Failure::DeviceLost) << unified;
    EXPECT_EQ(b, nullptr);
  }
}

// What commands end with. Only after a lack of memory is the device usable.
TEST_F(MetalRuntime, TellsWhatBecameOfCommands) {
  struct Case {
    long code;
    Failure::Code failure;
    const char* word;
  };
  for (const Case& c :
       {Case{1, Failure::DeviceLost, "internal"}, Case{2, Failure::DeviceLost, "too long"},
        Case{3, Failure::DeviceLost, "memory that does not exist"}, Case{4, Failure::DeviceLost, "no longer"},
        Case{7, Failure::DeviceLost, "may not use"}, Case{8, Failure::OutOfMemory, "not enough memory"},
        Case{9, Failure::DeviceLost, "freed"}, Case{11, Failure::DeviceLost, "removed"},
        Case{12, Failure::DeviceLost, "stack"}, Case{99, Failure::DeviceLost, "unknown"}}) {
    pretended_metal() = {};
    auto runtime = opened();
    ASSERT_TRUE(runtime);
    {
      gpu::TestDevice device(*runtime, gpu::example_msl_modules());
      gpu::Buffer* x = device.buffer(std::vector<float>(64));
      const Launch l =
          device.launch("scaled_sum", {{x, 0, 128}, {x, 128, 128}}, ScaledSumParams{0, 0, 32, 1.f}, 1);
      pretended_metal().fail_at = 1, pretended_metal().fail_code = c.code;
      EXPECT_FALSE(device.run({l}));
      const Failure f = device.run({l});
      EXPECT_EQ(f.code, c.failure) << c.code;
      EXPECT_NE(f.text.find(c.word), std::string::npos) << f.text;
      EXPECT_NE(f.text.find("Pretended M1"), std::string::npos) << f.text;
      EXPECT_NE(f.text.find("code " + std::to_string(c.code)), std::string::npos) << f.text;
      pretended_metal().fail_at = -1;
      float v = 0;
      gpu::Buffer* more = nullptr;
      gpu::Kernel* k = nullptr;
      const bool lost = c.failure == Failure::DeviceLost;
      EXPECT_EQ(runtime->read(x, 0, &v, 4).code, lost ? Failure::DeviceLost : Failure::None);
      EXPECT_EQ(runtime->write(x, 0, &v, 4).code, lost ? Failure::DeviceLost : Failure::None);
      EXPECT_EQ(runtime->allocate(64, &more).code, lost ? Failure::DeviceLost : Failure::None);
      EXPECT_EQ(runtime->load(gpu::rounding_msl_modules()[0], &k).code,
                lost ? Failure::DeviceLost : Failure::None);
      EXPECT_EQ(device.run({l}).text.empty(), !lost);
      runtime->release(more);
    }
  }
}

TEST_F(MetalRuntime, TellsOfCommandsThatItDoesNotGet) {
  auto runtime = opened();
  ASSERT_TRUE(runtime);
  gpu::Recording* r = nullptr;
  ASSERT_FALSE(runtime->record({}, &r));
  pretended_metal().no_commands = true;
  EXPECT_EQ(runtime->replay(r).code, Failure::DeviceLost);
  pretended_metal().no_commands = false;
  EXPECT_EQ(runtime->wait().code, Failure::DeviceLost);
  runtime->discard(r);
}

}  // namespace
}  // namespace gimbal::metal
