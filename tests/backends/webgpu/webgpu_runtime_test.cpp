// The WebGPU runtime on a real library: the example kernels give what C++ gives, with and without a fused
// fma(); each failure of the library becomes the failure that it is.
#define TESTED_BACKEND "webgpu"
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "backends/webgpu/api.h"
#include "backends/webgpu/runtime.h"
#include "gpu/device_main.h"
#include "gpu/example_checks.h"

namespace gimbal::gpu {

std::span<const KernelCode> example_wgsl_modules();
std::span<const KernelCode> rounding_wgsl_modules();

namespace {

using namespace webgpu;

// GIMBAL_TEST_LIBRARY: another one than Dawn.
std::string library() { return test::from_environment("GIMBAL_TEST_LIBRARY"); }
std::unique_ptr<Runtime> open(webgpu::Options options = {}) {
  options.library = library();
  std::unique_ptr<Runtime> runtime;
  Failure f = webgpu::open(0, options, &runtime);
  EXPECT_FALSE(f) << f.text;
  return runtime;
}

TEST(WebGpu, RunsTheExamples) {
  for (bool split_fma : {false, true}) {
    auto runtime = open({.split_fma = split_fma});
    ASSERT_TRUE(runtime);
    check_examples(*runtime, example_wgsl_modules());
    check_rounding(*runtime, rounding_wgsl_modules());
  }
}

// More than is read at once, at odd places.
TEST(WebGpu, CopiesMuch) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  std::vector<uint8_t> data((9u << 20) + 6), back(data.size());
  std::mt19937 random(3);
  for (uint8_t& b : data) b = uint8_t(random());
  Buffer* b = nullptr;
  ASSERT_FALSE(runtime->allocate(data.size() + 13, &b));
  ASSERT_FALSE(runtime->write(b, 13, data.data(), data.size()));
  ASSERT_FALSE(runtime->write(b, 14, data.data(), 1));  // the later one wins
  ASSERT_FALSE(runtime->write(b, 17, data.data() + 1, 2));
  data[4] = data[1], data[5] = data[2], data[1] = data[0];
  ASSERT_FALSE(runtime->read(b, 13, back.data(), back.size()));
  EXPECT_EQ(data, back);
  uint8_t before[13];
  ASSERT_FALSE(runtime->read(b, 0, before, 13));
  EXPECT_EQ(std::count(before, before + 13, 0), 13);
  runtime->release(b);
}

TEST(WebGpu, FactsAreThoseOfTheAdapter) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  const Facts f = runtime->facts();
  std::printf(
      "%s; %s; %llu of %llu bytes free; bindings of %llu at multiples of %u, buffers of %llu; %u groups%s\n",
      f.name.c_str(), f.driver.c_str(), static_cast<unsigned long long>(f.memory_free),
      static_cast<unsigned long long>(f.memory_total), static_cast<unsigned long long>(f.max_binding_bytes),
      f.binding_alignment, static_cast<unsigned long long>(f.max_allocation_bytes), f.max_groups,
      f.software ? "; software" : "");
  EXPECT_FALSE(f.name.empty());
  const char* edition = library().empty() ? "Dawn over " : "wgpu-native ";
  EXPECT_EQ(f.driver.find(edition), 0u) << f.driver;
  EXPECT_GE(f.max_binding_bytes, 1u << 27);  // what WebGPU promises, as the next two
  EXPECT_GE(f.max_allocation_bytes, 1u << 28);
  EXPECT_GE(f.max_groups, 65535u);
  EXPECT_TRUE(f.binding_alignment >= 4 && f.binding_alignment <= 256);
  EXPECT_EQ(f.software, f.name.find("llvmpipe") != std::string::npos);
  EXPECT_EQ(f.memory_free, f.memory_total);
  EXPECT_EQ(open({.memory = 12345})->facts().memory_total, 12345u);
}

TEST(WebGpu, RefusesWhatDoesNotFit) {
  auto runtime = open({.memory = uint64_t(1) << 50});
  ASSERT_TRUE(runtime);
  Buffer* b = nullptr;
  const uint64_t piece = runtime->facts().max_allocation_bytes;
  Failure f = runtime->allocate(piece + 4, &b);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_NE(f.text.find("it allocates at most"), std::string::npos) << f.text;
  runtime = open({.memory = 100000});
  ASSERT_FALSE(runtime->allocate(90001, &b));
  EXPECT_EQ(runtime->facts().memory_free, 100000u - 90004u);
  Buffer* more = nullptr;
  f = runtime->allocate(20000, &more);
  EXPECT_EQ(f.code, Failure::OutOfMemory);
  EXPECT_NE(f.text.find("20000 bytes requested, 9996 are free"), std::string::npos) << f.text;
  runtime->release(b);
  EXPECT_EQ(runtime->facts().memory_free, 100000u);
}

// Launches of one recording see what those before them wrote, whether or not they asked for it; it may be
// replayed while it runs.
TEST(WebGpu, ReplaysWhileItRuns) {
  auto runtime = open();
  ASSERT_TRUE(runtime);
  TestDevice device(*runtime, example_wgsl_modules());
  const uint32_t n = 64 * 40;
  Buffer *a = device.buffer(std::vector<float>(n, 1.f)), *b = device.buffer(std::vector<float>(n));
  auto step = [&](Buffer* from, Buffer* to, float plus) {
    return device.launch("scaled_sum", {{from, 0, n * 4}, {to, 0, n * 4}}, ScaledSumParams{0, 0, n, plus},
                         n / 64);
  };
  Recording* r = nullptr;
  ASSERT_FALSE(runtime->record(std::vector<Launch>{step(a, b, 1.f), step(b, a, -5.f)}, &r));
  float want = 1.f;
  for (int i = 0; i < 8; i++) {
    ASSERT_FALSE(runtime->replay(r));
    want = 2.f * (2.f * want + 1.f) - 5.f;
  }
  for (float v : device.contents<float>(a, n)) ASSERT_EQ(v, want);
  runtime->discard(r);
}

// ---- what the library says when things go wrong

void expect(const Failure& f, Failure::Code code, std::initializer_list<const char*> words) {
  EXPECT_EQ(f.code, code) << f.text;
  for (const char* word : words) EXPECT_NE(f.text.find(word), std::string::npos) << word << " in: " << f.text;
}

TEST(WebGpuFailures, OfTextsNameTheKernel) {
  auto runtime = open({.split_fma = true});
  ASSERT_TRUE(runtime);
  constexpr std::string_view wrong =
      "override fma_is_fused: bool = true; @compute @workgroup_size(1) fn main() { let x = y; }";
  const KernelCode code{"nonsense", {reinterpret_cast<const uint8_t*>(wrong.data()), wrong.size()}, 64, 1, 1,
                        4};
  Kernel* k = nullptr;
  expect(runtime->load(code, &k), Failure::Invalid,
         {"kernel nonsense: a validation error:",
          library().empty() ? "unresolved value 'y'" : "identifier: `y`"});
  EXPECT_FALSE(runtime->load(example_wgsl_modules()[0], &k));
}

// A table that claims fewer buffers than the kernel has; one buffer that is written by two bindings.
TEST(WebGpuFailures, OfLaunchesAreToldWhenTheyAreRecorded) {
  const auto table = example_wgsl_modules();
  std::vector<KernelCode> lying(table.begin(), table.end());
  for (KernelCode& k : lying) k.bindings = 1;
  Recording* r = nullptr;
  {
    auto runtime = open({.split_fma = true});
    ASSERT_TRUE(runtime);
    TestDevice device(*runtime, lying);
    Buffer* x = device.buffer(std::vector<float>(1024));
    const Launch l = device.launch("row_sum", {{x, 0, 64}}, RowSumParams{16, 0}, 1);
    expect(runtime->record({&l, 1}, &r), Failure::Invalid, {"1 launches: a validation error:", "row_sum"});
    EXPECT_EQ(r, nullptr);
  }
  if (!library().empty()) return;  // wgpu-native accepts what follows
  auto runtime = open({.split_fma = true});
  ASSERT_TRUE(runtime);
  TestDevice device(*runtime, table);
  Buffer* x = device.buffer(std::vector<float>(1024));
  Launch l = device.launch("row_sum", {{x, 0, 512}, {x, 256, 512}}, RowSumParams{16, 0}, 1);
  expect(runtime->record({&l, 1}, &r), Failure::Invalid, {"a validation error:", "alias"});
  l.binding[1].offset = 512;
  EXPECT_FALSE(runtime->record({&l, 1}, &r));
  EXPECT_FALSE(runtime->replay(r));
  EXPECT_FALSE(runtime->wait());
  runtime->discard(r);
}

// A kernel of the examples, and what it takes to run it.
struct Ready {
  explicit Ready(const webgpu::Options& o) : runtime(open(o)) {
    device.emplace(*runtime, example_wgsl_modules());
    Buffer* x = device->buffer(std::vector<float>(1024));
    const Launch l = device->launch("row_sum", {{x, 0, 64}, {x, 256, 64}}, RowSumParams{16, 0}, 1);
    const Failure f = runtime->record({&l, 1}, &recording);
    EXPECT_FALSE(f) << f.text;
  }
  ~Ready() { runtime->discard(recording); }
  std::unique_ptr<Runtime> runtime;
  std::optional<TestDevice> device;
  Recording* recording = nullptr;
};

bool armed;  // whether the functions below do what they are there for
Api real;    // the library's own

TEST(WebGpuFailures, OutsideOfScopesAreHeard) {
  armed = false;
  Ready ready({.split_fma = true, .intercept = [](Api& api) {
                 real = api;
                 api.wgpuQueueSubmit = [](Queue q, size_t n, const Commands* c) {
                   real.wgpuQueueSubmit(q, n, c);
                   if (armed) real.wgpuQueueSubmit(q, n, c);  // commands are good for once
                 };
               }});
  EXPECT_FALSE(ready.runtime->replay(ready.recording));
  armed = true;
  expect(ready.runtime->replay(ready.recording), Failure::Invalid, {"WebGPU: a validation error:"});
  armed = false;
  EXPECT_FALSE(ready.runtime->replay(ready.recording));  // told once, and over
  EXPECT_FALSE(ready.runtime->wait());
}

// As if the library had said so when it was asked: there is memory enough here.
TEST(WebGpuFailures, OfMemoryLeaveTheDeviceUsable) {
  armed = false;
  Ready ready({.split_fma = true, .intercept = [](Api& api) {
                 real = api;
                 api.wgpuDevicePopErrorScope = [](webgpu::Device d, ScopeCallback c) {
                   static ScopeCallback asked;  // the memory that the second of three scopes counts
                   static int popped;
                   if (!armed || ++popped % 3 != 2) return real.wgpuDevicePopErrorScope(d, c);
                   asked = c;
                   c.first = nullptr;
                   c.call = [](uint32_t status, uint32_t, Text, void*, void*) {
                     asked.call(status, kOutOfMemory + 1, text("no memory left"), asked.first, nullptr);
                   };
                   return real.wgpuDevicePopErrorScope(d, c);
                 };
               }});
  armed = true;
  Buffer* b = nullptr;
  expect(ready.runtime->allocate(4096, &b), Failure::OutOfMemory,
         {"4096 bytes requested: out of memory: no memory left"});
  EXPECT_EQ(b, nullptr);
  armed = false;
  EXPECT_FALSE(ready.runtime->allocate(4096, &b));
  ready.runtime->release(b);
  EXPECT_FALSE(ready.runtime->replay(ready.recording));
  EXPECT_FALSE(ready.runtime->wait());
}

TEST(WebGpuFailures, OfReadingSayWhy) {
  armed = false;
  Ready ready({.split_fma = true, .intercept = [](Api& api) {
                 real = api;
                 api.wgpuBufferMapAsync = [](GpuBuffer b, uint64_t mode, size_t at, size_t bytes,
                                             MapCallback c) {
                   return real.wgpuBufferMapAsync(b, armed ? uint64_t(2) : mode, at, bytes, c);  // to write
                 };
               }});
  armed = true;
  Buffer* b = nullptr;
  ASSERT_FALSE(ready.runtime->allocate(64, &b));
  uint32_t word;
  expect(ready.runtime->read(b, 0, &word, 4), Failure::Invalid, {"wgpuBufferMapAsync: status"});
  armed = false;
  ready.runtime->release(b);
}

// Lost as Dawn loses a device on demand: from then on every call reports it.
TEST(WebGpuFailures, OfALostDeviceStay) {
  static webgpu::Device device;
  Ready ready({.split_fma = true, .intercept = [](Api& api) {
                 real = api;
                 api.wgpuDeviceGetQueue = [](webgpu::Device d) {
                   return real.wgpuDeviceGetQueue(device = d);
                 };
               }});
  void* library = dlopen("libwebgpu_dawn.so", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_TRUE(library);
  auto lose =
      reinterpret_cast<void (*)(webgpu::Device, uint32_t, Text)>(dlsym(library, "wgpuDeviceForceLoss"));
  dlclose(library);
  ASSERT_TRUE(lose);
  EXPECT_FALSE(ready.runtime->replay(ready.recording));
  Buffer* kept = nullptr;
  ASSERT_FALSE(ready.runtime->allocate(64, &kept));
  lose(device, 1, text("pulled out"));
  const auto lost = {"is lost: ", "pulled out"};
  Failure f = ready.runtime->wait();
  expect(f, Failure::DeviceLost, lost);
  expect(ready.runtime->replay(ready.recording), Failure::DeviceLost, lost);
  Buffer* b = nullptr;
  expect(ready.runtime->allocate(64, &b), Failure::DeviceLost, lost);
  EXPECT_EQ(b, nullptr);
  Kernel* k = nullptr;
  expect(ready.runtime->load(example_wgsl_modules()[0], &k), Failure::DeviceLost, lost);
  Recording* r = nullptr;
  expect(ready.runtime->record({}, &r), Failure::DeviceLost, lost);
  uint32_t word = 0;
  expect(ready.runtime->read(kept, 0, &word, 4), Failure::DeviceLost, lost);
  expect(ready.runtime->write(kept, 0, &word, 4), Failure::DeviceLost, lost);
  ready.runtime->release(kept);
}

TEST(WebGpuFailures, OfOpeningSayWhy) {
  std::unique_ptr<Runtime> runtime;
  for (int index : {-1, 1})
    expect(webgpu::open(index, {}, &runtime), Failure::Unsupported,
           {index == 1 ? "there is no WebGPU device 1: WebGPU offers one, number 0" : "device -1"});
  EXPECT_EQ(runtime, nullptr);
}

}  // namespace
}  // namespace gimbal::gpu
