// The Vulkan runtime: the example kernels give what C++ gives, copied directly and through staging, under the
// validation layer; each failure of the driver becomes the failure that it is.
#define TESTED_BACKEND "vulkan"
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <utility>

#include "backends/vulkan/api.h"
#include "backends/vulkan/runtime.h"
#include "gpu/device_main.h"
#include "gpu/example_checks.h"

namespace gimbal::gpu {

std::span<const KernelCode> example_spirv_modules();
std::span<const KernelCode> rounding_spirv_modules();
std::span<const KernelCode> toy_spirv_modules();

namespace {

std::unique_ptr<Runtime> open(const vulkan::Options& options) {
  std::unique_ptr<Runtime> runtime;
  Failure f = vulkan::open(0, options, &runtime);
  EXPECT_FALSE(f) << f.text;
  return runtime;
}

struct Mode {
  const char* name;
  vulkan::Options options;
};

class Vulkan : public testing::TestWithParam<Mode> {};

TEST_P(Vulkan, RunsTheExamples) {
  auto runtime = open(GetParam().options);
  ASSERT_TRUE(runtime);
  check_examples(*runtime, example_spirv_modules());
  check_rounding(*runtime, rounding_spirv_modules());
  check_toy(*runtime, toy_spirv_modules());
}

// More than the ring of copies holds, at odd places.
TEST_P(Vulkan, CopiesMuch) {
  auto runtime = open(GetParam().options);
  ASSERT_TRUE(runtime);
  std::vector<uint8_t> data(30u << 20), back(data.size());
  std::mt19937 random(3);
  for (uint8_t& b : data) b = uint8_t(random());
  Buffer* b = nullptr;
  ASSERT_FALSE(runtime->allocate(data.size() + 13, &b));
  ASSERT_FALSE(runtime->write(b, 13, data.data(), data.size()));
  ASSERT_FALSE(runtime->write(b, 14, data.data(), 1));  // the later one wins
  data[1] = data[0];
  ASSERT_FALSE(runtime->read(b, 13, back.data(), back.size()));
  EXPECT_EQ(data, back);
  runtime->release(b);
}

INSTANTIATE_TEST_SUITE_P(Modes, Vulkan,
                         testing::Values(Mode{"Direct", {}}, Mode{"Staging", {.staging = true}},
                                         Mode{"SplitFma", {.split_fma = true}},
                                         Mode{"NoSubgroups", {.no_subgroups = true}}),
                         [](auto& p) { return p.param.name; });

TEST(VulkanFacts, AreThoseOfADevice) {
  auto runtime = open({});
  ASSERT_TRUE(runtime);
  const Facts& f = runtime->facts();
  std::printf("%s; %s; %llu of %llu bytes free; bindings of %llu at multiples of %u; %u groups%s%s\n",
              f.name.c_str(), f.driver.c_str(), static_cast<unsigned long long>(f.memory_free),
              static_cast<unsigned long long>(f.memory_total),
              static_cast<unsigned long long>(f.max_binding_bytes), f.binding_alignment, f.max_groups,
              f.software ? "; software" : "", f.unified_memory ? "; unified memory" : "");
  EXPECT_FALSE(f.name.empty());
  EXPECT_FALSE(f.driver.empty());
  EXPECT_GE(f.max_binding_bytes, 1u << 27);  // what Vulkan promises
  EXPECT_EQ(f.max_binding_bytes % 4, 0u);
  EXPECT_GE(f.max_groups, 65535u);
  EXPECT_GE(f.max_allocation_bytes,
            (1u << 30) - (1u << 16));  // what Vulkan promises, less what a driver may add
  if (!f.pci_id.empty()) {
    EXPECT_TRUE(std::regex_match(f.pci_id, std::regex("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]")))
        << f.pci_id;
  }
  EXPECT_TRUE(f.binding_alignment >= 4 && f.binding_alignment <= 256 &&
              !(f.binding_alignment & (f.binding_alignment - 1)));
  EXPECT_GT(f.memory_total, 1u << 20);
  EXPECT_LE(f.memory_free, f.memory_total);
  EXPECT_EQ(f.software,
            f.name.find("llvmpipe") != std::string::npos || f.name.find("SwiftShader") != std::string::npos);
}

// lavapipe's sub-groups are its vectors, of 4, 8 or 16 lanes.
TEST(VulkanFacts, TellsWhichLanesExchange) {
  for (bool without : {true, false}) {
    auto runtime = open({.no_subgroups = without});
    ASSERT_TRUE(runtime);
    Kernel* k = nullptr;
    const Failure f = runtime->load(example_spirv_modules()[0], &k);
    ASSERT_FALSE(f) << f.text;
    const Facts& facts = runtime->facts();
    std::printf("%s: %u\n", facts.driver.c_str(), facts.subgroup_lanes);
    const char* bits = std::getenv("LP_NATIVE_VECTOR_WIDTH");
    if (without) {
      EXPECT_EQ(facts.subgroup_lanes, 1u);
    } else if (bits && facts.name.rfind("llvmpipe", 0) == 0) {
      EXPECT_EQ(facts.subgroup_lanes, uint32_t(std::stoi(bits)) / 32) << facts.driver;
    }
  }
}

// Two launches without after_all between them, then one that needs both, in one recording that is replayed
// while it runs.
TEST(VulkanRecordings, ReplayWhileTheyRun) {
  for (bool staging : {false, true}) {
    auto runtime = open({.staging = staging});
    ASSERT_TRUE(runtime);
    TestDevice device(*runtime, example_spirv_modules());
    const uint32_t n = 64 * 40;
    Buffer *a = device.buffer(std::vector<float>(n, 1.f)), *b = device.buffer(std::vector<float>(n)),
           *c = device.buffer(std::vector<float>(n));
    auto step = [&](Buffer* from, Buffer* to, float plus) {
      return device.launch("scaled_sum", {{from, 0, n * 4}, {to, 0, n * 4}}, ScaledSumParams{0, 0, n, plus},
                           n / 64);
    };
    std::vector<Launch> all = {step(a, b, 1.f), step(a, c, 2.f), step(b, a, -5.f)};
    all[1].after_all = false;
    Recording* r = nullptr;
    ASSERT_FALSE(runtime->record(all, &r));
    float want = 1.f;
    for (int i = 0; i < 8; i++) {
      ASSERT_FALSE(runtime->replay(r));
      want = 2.f * (2.f * want + 1.f) - 5.f;
    }
    for (float v : device.contents<float>(a, n)) ASSERT_EQ(v, want);
    runtime->discard(r);
  }
}

// ---- the validation layer

std::unique_ptr<Runtime> validated(bool staging, void (*intercept)(VolkDeviceTable&) = nullptr) {
  std::unique_ptr<Runtime> runtime;
  Failure f = vulkan::open(0, {.staging = staging, .validation = true, .intercept = intercept}, &runtime);
  if (f.text.find("vulkan-validationlayers") == std::string::npos) { EXPECT_FALSE(f) << f.text; }
  return runtime;
}

TEST(VulkanValidation, FindsNothing) {
  for (bool staging : {false, true}) {
    auto runtime = validated(staging);
    if (!runtime) GTEST_SKIP() << "vulkan-validationlayers is not installed: scripts/setup.sh gpu";
    check_examples(*runtime, example_spirv_modules());
  }
}

// The layer is really there: a table that claims fewer buffers than the kernel has leaves one unbound.
TEST(VulkanValidation, FindsWhatIsWrong) {
  auto runtime = validated(false);
  if (!runtime) GTEST_SKIP() << "vulkan-validationlayers is not installed: scripts/setup.sh gpu";
  auto table = example_spirv_modules();
  std::vector<KernelCode> lying(table.begin(), table.end());
  for (KernelCode& k : lying) k.bindings = 1;
  TestDevice device(*runtime, lying);
  Buffer* x = device.buffer(std::vector<float>(16));
  Failure f = device.run({device.launch("row_sum", {{x, 0, 64}}, RowSumParams{16, 0}, 1)});
  EXPECT_EQ(f.code, Failure::Invalid);
  EXPECT_NE(f.text.find("the validation layer reports"), std::string::npos) << f.text;
}

// A launch that reads what the one before it wrote: nothing to say with the barrier between them, a hazard
// without it.
TEST(VulkanValidation, FindsMissingBarriers) {
  for (bool barriers : {true, false}) {
    auto without = [](VolkDeviceTable& t) {
      t.vkCmdPipelineBarrier = [](VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                                  VkDependencyFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
                                  const VkBufferMemoryBarrier*, uint32_t, const VkImageMemoryBarrier*) {};
    };
    auto runtime = barriers ? validated(false) : validated(false, without);
    if (!runtime) GTEST_SKIP() << "vulkan-validationlayers is not installed: scripts/setup.sh gpu";
    TestDevice device(*runtime, example_spirv_modules());
    Buffer *a = device.buffer(std::vector<float>(64)), *b = device.buffer(std::vector<float>(64));
    auto step = [&](Buffer* from, Buffer* to) {
      return device.launch("scaled_sum", {{from, 0, 256}, {to, 0, 256}}, ScaledSumParams{0, 0, 64, 1.f}, 1);
    };
    Failure f = device.run({step(a, b), step(b, a)});
    EXPECT_EQ(f.text.find("SYNC-HAZARD") != std::string::npos, !barriers) << f.text;
  }
}

// ---- what drivers say when things go wrong

TEST(VulkanFailures, HaveTheirCode) {
  auto code = [](VkResult r) { return vulkan::failure(r, "vkX").code; };
  EXPECT_EQ(code(VK_SUCCESS), Failure::None);
  EXPECT_EQ(code(VK_ERROR_DEVICE_LOST), Failure::DeviceLost);
  for (VkResult r : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_POOL_MEMORY,
                     VK_ERROR_TOO_MANY_OBJECTS})
    EXPECT_EQ(code(r), Failure::OutOfMemory);
  EXPECT_EQ(code(VK_ERROR_INCOMPATIBLE_DRIVER), Failure::Unsupported);
  EXPECT_EQ(code(VK_ERROR_UNKNOWN), Failure::Invalid);
  EXPECT_EQ(vulkan::failure(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkAllocateMemory").text,
            "vkAllocateMemory failed: VK_ERROR_OUT_OF_DEVICE_MEMORY");
  EXPECT_EQ(vulkan::failure(VkResult(-12345), "vkX").text, "vkX failed: VkResult -12345");
}

// In place of the driver's own. These two are the driver's until the device is lost.
bool lost = false;
PFN_vkQueueSubmit submit_of_the_driver = nullptr;
PFN_vkWaitSemaphores wait_of_the_driver = nullptr;
VkResult submitted(VkQueue q, uint32_t n, const VkSubmitInfo* s, VkFence f) {
  return lost ? VK_ERROR_DEVICE_LOST : submit_of_the_driver(q, n, s, f);
}
VkResult waited(VkDevice d, const VkSemaphoreWaitInfo* i, uint64_t timeout) {
  return lost ? VK_ERROR_DEVICE_LOST : wait_of_the_driver(d, i, timeout);
}
VkResult allocated(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*, VkDeviceMemory*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}
VkResult piped(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*,
               const VkAllocationCallbacks*, VkPipeline*) {
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}
VkResult pooled(VkDevice, const VkDescriptorPoolCreateInfo*, const VkAllocationCallbacks*,
                VkDescriptorPool*) {
  return VK_ERROR_FRAGMENTATION;
}

TEST(VulkanFailures, OfAllocationsLeaveTheDeviceUsable) {
  auto runtime = open({.intercept = [](VolkDeviceTable& t) { t.vkAllocateMemory = allocated; }});
  ASSERT_TRUE(runtime);
  Buffer* b = nullptr;
  Failure f = runtime->allocate(4096, &b);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_NE(f.text.find("vkAllocateMemory failed: VK_ERROR_OUT_OF_DEVICE_MEMORY (4096 bytes requested"),
            std::string::npos)
      << f.text;
  EXPECT_EQ(b, nullptr);
  EXPECT_FALSE(runtime->wait());
  EXPECT_GT(runtime->facts().memory_free, 0u);
}

TEST(VulkanFailures, OfPipelinesNameTheKernel) {
  auto runtime = open({.split_fma = true, .no_subgroups = true, .intercept = [](VolkDeviceTable& t) {
                         t.vkCreateComputePipelines = piped;
                       }});
  ASSERT_TRUE(runtime);
  Kernel* k = nullptr;
  Failure f = runtime->load(example_spirv_modules()[3], &k);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_EQ(f.text.find("kernel row_sum: "), 0u) << f.text;
  EXPECT_NE(f.text.find("vkCreateComputePipelines failed: VK_ERROR_OUT_OF_HOST_MEMORY"), std::string::npos)
      << f.text;
}

// The question whether fma() is one operation: asked again when it failed, not taken as answered.
TEST(VulkanFailures, OfTheFirstQuestionLeaveItOpen) {
  static int calls;
  static PFN_vkCreateComputePipelines real;
  calls = 0;
  auto runtime = open({.no_subgroups = true, .intercept = [](VolkDeviceTable& t) {
                         real = t.vkCreateComputePipelines;
                         t.vkCreateComputePipelines = [](VkDevice d, VkPipelineCache cache, uint32_t n,
                                                         const VkComputePipelineCreateInfo* info,
                                                         const VkAllocationCallbacks* a, VkPipeline* out) {
                           return calls++ ? real(d, cache, n, info, a, out) : VK_ERROR_OUT_OF_DEVICE_MEMORY;
                         };
                       }});
  ASSERT_TRUE(runtime);
  Kernel* k = nullptr;
  EXPECT_EQ(runtime->load(example_spirv_modules()[3], &k).code, Failure::OutOfMemory);
  EXPECT_FALSE(runtime->load(example_spirv_modules()[3], &k));
  EXPECT_EQ(calls, 3);  // the question twice, and the kernel
}

// A driver whose sub-groups are not what it says: the text assumes twice as many lanes as they have.
TEST(VulkanSubgroups, ThatExchangeOtherLanesAreLeftAlone) {
  static PFN_vkCreateComputePipelines real;
  static int told;
  told = 0;
  auto runtime = open({.intercept = [](VolkDeviceTable& t) {
    real = t.vkCreateComputePipelines;
    t.vkCreateComputePipelines = [](VkDevice d, VkPipelineCache cache, uint32_t n,
                                    const VkComputePipelineCreateInfo* info, const VkAllocationCallbacks* a,
                                    VkPipeline* out) {
      VkComputePipelineCreateInfo changed = *info;
      VkSpecializationInfo constants = *info->stage.pSpecializationInfo;
      uint32_t values[2] = {};
      memcpy(values, constants.pData, sizeof values);
      values[1] *= 2;
      told += constants.mapEntryCount == 2;
      constants.pData = values, changed.stage.pSpecializationInfo = &constants;
      return real(d, cache, n, &changed, a, out);
    };
  }});
  ASSERT_TRUE(runtime);
  if (runtime->facts().driver.find("sub-groups of") == std::string::npos) GTEST_SKIP() << "it has none";
  check_joined(*runtime, example_spirv_modules());
  EXPECT_EQ(told, 1);  // the probe
  EXPECT_EQ(runtime->facts().subgroup_lanes, 1u);
}

Failure run_row_sum(Runtime& runtime) {
  TestDevice device(runtime, example_spirv_modules());
  Buffer* x = device.buffer(std::vector<float>(128));
  return device.run({device.launch("row_sum", {{x, 0, 64}, {x, 256, 64}}, RowSumParams{16, 0}, 1)});
}

TEST(VulkanFailures, OfRecordingsAreTheirs) {
  auto runtime = open({.split_fma = true, .no_subgroups = true, .intercept = [](VolkDeviceTable& t) {
                         t.vkCreateDescriptorPool = pooled;
                       }});
  ASSERT_TRUE(runtime);
  Failure f = run_row_sum(*runtime);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_NE(f.text.find("vkCreateDescriptorPool failed: VK_ERROR_FRAGMENTATION"), std::string::npos)
      << f.text;
}

// Lost when something is submitted, and when it is waited for: from then on every call says so. The first
// submission clears the first buffer.
TEST(VulkanFailures, OfALostDeviceStay) {
  using Intercept = void (*)(VolkDeviceTable&);
  const Intercept ways[] = {
      [](VolkDeviceTable& t) { submit_of_the_driver = std::exchange(t.vkQueueSubmit, submitted); },
      [](VolkDeviceTable& t) { wait_of_the_driver = std::exchange(t.vkWaitSemaphores, waited); }};
  for (Intercept way : ways)
    for (bool at_once : {true, false}) {
      lost = at_once;
      auto runtime = open({.split_fma = true, .no_subgroups = true, .intercept = way});
      ASSERT_TRUE(runtime);
      Buffer* b = nullptr;
      Failure f;
      if (at_once) {
        f = runtime->allocate(64, &b);
        if (!f) {  // the clearing is under way
          f = runtime->wait();
          runtime->release(std::exchange(b, nullptr));
        }
      } else {
        TestDevice device(*runtime, example_spirv_modules());
        Buffer* x = device.buffer(std::vector<float>(128));
        const Launch sum = device.launch("row_sum", {{x, 0, 64}, {x, 256, 64}}, RowSumParams{16, 0}, 1);
        lost = true;
        f = device.run({sum});
      }
      EXPECT_EQ(f.code, Failure::DeviceLost);
      EXPECT_NE(f.text.find("VK_ERROR_DEVICE_LOST: the device stopped answering"), std::string::npos)
          << f.text;
      EXPECT_EQ(runtime->wait().code, Failure::DeviceLost);
      EXPECT_EQ(runtime->allocate(64, &b).code, Failure::DeviceLost);
      EXPECT_EQ(b, nullptr);
    }
  lost = false;
}

TEST(VulkanFailures, OfOpeningSayWhy) {
  std::unique_ptr<Runtime> runtime;
  Failure f = vulkan::open(99, {}, &runtime);
  EXPECT_EQ(f.code, Failure::Unsupported);
  EXPECT_NE(f.text.find("none with the number 99"), std::string::npos) << f.text;
  f = vulkan::open(-1, {}, &runtime);
  EXPECT_EQ(f.code, Failure::Unsupported);
  f = vulkan::open(0, {.library = "/nonexistent/libvulkan.so"}, &runtime);
  EXPECT_EQ(f.code, Failure::Unsupported);
  EXPECT_NE(f.text.find("/nonexistent/libvulkan.so"), std::string::npos) << f.text;
  f = vulkan::open(0, {.library = "libm.so.6"}, &runtime);
  EXPECT_EQ(f.text, "libm.so.6 is not a Vulkan library: it lacks vkGetInstanceProcAddr");
  EXPECT_EQ(runtime, nullptr);
}

}  // namespace
}  // namespace gimbal::gpu
