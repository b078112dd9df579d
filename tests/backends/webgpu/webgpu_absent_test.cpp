// Machines on which WebGPU cannot be used, as they are or as a library could be: each "no" says why, and what
// to do.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/webgpu/gpu.h"
#include "backends/webgpu/runtime.h"
#include "device/reason.h"
#include "discovery/registry.h"

namespace gimbal::webgpu {
namespace {

Failure loading(const std::string& library) {
  Api api;
  return Api::load(library, &api);
}
void expect_refusal(const Failure& f, const char* reason, std::initializer_list<const char*> words) {
  EXPECT_EQ(f.code, Failure::Unsupported) << f.text;
  EXPECT_STREQ(f.reason, reason) << f.text;
  for (const char* word : words) EXPECT_NE(f.text.find(word), std::string::npos) << word << " in: " << f.text;
}

TEST(WebGpuAbsent, TheLibraryIsMissing) {
  expect_refusal(loading("/nonexistent/libwebgpu_dawn.so"), reason::kLibraryMissing,
                 {"no WebGPU library can be opened: /nonexistent/libwebgpu_dawn.so", "\nInstall Dawn"});
}

// Built for this test (webgpu.cmake): libraries that export what tells editions apart, and nothing that
// works.
TEST(WebGpuAbsent, TheLibraryIsAnother) {
  expect_refusal(loading("libm.so.6"), reason::kLibraryMissing,
                 {"libm.so.6 is not a WebGPU library: it lacks wgpuCreateInstance"});
  const std::string folder = WEBGPU_OTHERS;
  expect_refusal(loading(folder + "/libwebgpu_native.so"), reason::kLibraryMissing,
                 {"libwebgpu_native.so is wgpu-native, and does not report its version", "\nInstall Dawn"});
  expect_refusal(loading(folder + "/libwebgpu_native_old.so"), reason::kDriverTooOld,
                 {"is wgpu-native 22.1.0.5: gimbal knows the interface of 27.0.2.0 to 29.0.1", "\nInstall"});
  expect_refusal(loading(folder + "/libwebgpu_native_new.so"), reason::kLibraryMissing,
                 {"is wgpu-native 30.0.0.0: gimbal knows", "or wgpu-native 27.0.2 to 29.0.1"});
  expect_refusal(loading(folder + "/libwebgpu_native_half.so"), reason::kLibraryMissing,
                 {"libwebgpu_native_half.so has no wgpuInstanceRequestAdapter"});
  expect_refusal(loading(folder + "/libwebgpu_later.so"), reason::kLibraryMissing,
                 {"is of a later edition", "wgpuGetInstanceFeatures"});
  expect_refusal(loading(folder + "/libwebgpu_earlier.so"), reason::kDriverTooOld,
                 {"is of an earlier edition"});
  expect_refusal(loading(folder + "/libwebgpu_half.so"), reason::kDriverTooOld,
                 {"libwebgpu_half.so has no wgpuInstanceRequestAdapter"});
}

TEST(WebGpuAbsent, ErrorsHaveTheirCode) {
  EXPECT_FALSE(failure(kNoError, "", "x"));
  EXPECT_EQ(failure(2, "m", "x").text, "x: a validation error: m");
  EXPECT_EQ(failure(2, "m", "x").code, Failure::Invalid);
  EXPECT_EQ(failure(3, "m", "x").code, Failure::OutOfMemory);
  EXPECT_EQ(failure(4, "m", "x").text, "x: an internal error: m");
  EXPECT_EQ(failure(5, "m", "x").text, "x: error 5: m");
}

// ---- adapters that there could be

struct Fake {
  bool instance = true;
  uint32_t adapter = kSuccess, device = kSuccess, info = kSuccess, limits = kSuccess, waiting = kSuccess;
  uint32_t type = 1, api = 6;  // a card of its own, over Vulkan
  uint32_t storage_buffers = 8, uniform_buffers = 12, lanes = 256, lanes_x = 256, shared = 16384,
           alignment = 256;
  uint64_t binding = uint64_t(128) << 20, buffer = uint64_t(256) << 20;
};
Fake fake;
Limits asked;  // of the device

template <class Handle>
Handle handle() {
  return reinterpret_cast<Handle>(&fake);
}

Api fake_api() {
  Api api;
  api.wgpuCreateInstance = [](const InstanceDescriptor*) {
    return fake.instance ? handle<Instance>() : nullptr;
  };
  api.wgpuInstanceRequestAdapter = [](Instance, const RequestAdapterOptions*, AdapterCallback c) {
    const bool found = fake.adapter == kSuccess;
    c.call(fake.adapter, found ? handle<Adapter>() : nullptr, text(found ? "" : "none here"), c.first,
           c.second);
    return Future{1};
  };
  api.wgpuInstanceWaitAny = [](Instance, size_t, FutureWaitInfo*, uint64_t) { return fake.waiting; };
  api.wgpuAdapterGetInfo = [](Adapter, AdapterInfo* i) {
    i->device = text("Fake GPU"), i->description = text("driver 1.2"), i->api = fake.api, i->type = fake.type;
    return fake.info;
  };
  api.wgpuAdapterInfoFreeMembers = [](AdapterInfo) {};
  api.wgpuAdapterGetLimits = [](Adapter, Limits* l) {
    l->storage_buffers = fake.storage_buffers, l->uniform_buffers = fake.uniform_buffers;
    l->lanes = fake.lanes, l->lanes_x = fake.lanes_x, l->shared_bytes = fake.shared, l->grid = 65535;
    l->storage_alignment = l->uniform_alignment = fake.alignment;
    l->storage_binding_bytes = fake.binding, l->buffer_bytes = fake.buffer;
    return fake.limits;
  };
  api.wgpuAdapterRequestDevice = [](Adapter, const DeviceDescriptor* d, DeviceCallback c) {
    asked = *d->limits;
    const bool given = fake.device == kSuccess;
    c.call(fake.device, given ? handle<Device>() : nullptr, text(given ? "" : "not today"), c.first,
           c.second);
    return Future{2};
  };
  api.wgpuDeviceGetQueue = [](Device) { return handle<Queue>(); };
  api.wgpuInstanceRelease = [](Instance) {};
  api.wgpuAdapterRelease = [](Adapter) {};
  api.wgpuDeviceRelease = [](Device) {};
  api.wgpuQueueRelease = [](Queue) {};
  return api;
}
std::string refusal(const Fake& f) {
  fake = f;
  std::unique_ptr<Gpu> gpu;
  const Failure failure = Gpu::open(fake_api(), &gpu);
  EXPECT_EQ(failure.code, failure ? Failure::Unsupported : Failure::None) << failure.text;
  EXPECT_EQ(gpu != nullptr, !failure);
  const bool none = failure.text.find("found no adapter") != std::string::npos;
  EXPECT_STREQ(failure.reason, none ? reason::kNoDevice : "") << failure.text;
  return failure.text;
}

TEST(WebGpuAbsent, ThereIsNoAdapter) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.instance = false}).find("creates no instance"), std::string::npos);
  EXPECT_NE(refusal({.adapter = 3}).find("found no adapter: none here\nInstall the driver"),
            std::string::npos);
  // Dawn's own, which computes nothing: what it offers where there is no driver.
  EXPECT_NE(refusal({.api = 1}).find("found no adapter: only one that computes nothing\nInstall the driver"),
            std::string::npos);
  EXPECT_EQ(refusal({.device = 3}), "WebGPU adapter 'Fake GPU' creates no device: not today");
  EXPECT_NE(refusal({.info = 2}).find("wgpuAdapterGetInfo"), std::string::npos);
  EXPECT_NE(refusal({.limits = 2}).find("wgpuAdapterGetLimits"), std::string::npos);
  fake = {.waiting = 3};
  std::unique_ptr<Gpu> gpu;
  EXPECT_EQ(Gpu::open(fake_api(), &gpu).text, "wgpuInstanceWaitAny failed with status 3");
}

// wgpu-native answers before it returns. One that does not is not waited for without end.
TEST(WebGpuAbsent, WhatShouldBeAnsweredAtOnceIsNot) {
  fake = {};
  Api api = fake_api();
  api.edition = wgpu_native("27.0.4.0");
  api.wgpuInstanceWaitAny = nullptr;  // ends the process there
  api.wgpuCreateInstance = [](const InstanceDescriptor* d) { return d ? nullptr : handle<Instance>(); };
  std::unique_ptr<Gpu> gpu;
  ASSERT_FALSE(Gpu::open(api, &gpu));
  EXPECT_EQ(gpu->facts().driver, "wgpu-native 27.0.4.0 over Vulkan: driver 1.2");
  static int polled;
  polled = 0;
  api.wgpuDevicePoll = [](Device d, uint32_t wait, const void*) { polled += d && wait; };
  ASSERT_FALSE(Gpu::open(api, &gpu));
  EXPECT_EQ(polled, 0);  // everything was answered
  EXPECT_FALSE(gpu->wait_for_all());
  EXPECT_EQ(polled, 1);
  fake.adapter = 3;
  EXPECT_EQ(Gpu::open(api, &gpu).text,
            "the WebGPU library found no adapter: none here\nInstall the driver of your graphics card");
  api.wgpuInstanceRequestAdapter = [](Instance, const RequestAdapterOptions*, AdapterCallback) {
    return Future{0};
  };
  EXPECT_EQ(Gpu::open(api, &gpu).text, "the WebGPU library did not answer a request");
}

TEST(WebGpuAbsent, TheAdapterIsNotGoodEnough) {
  const std::string name = "WebGPU adapter 'Fake GPU': ";
  EXPECT_EQ(refusal({.storage_buffers = 7}),
            name + "a kernel can have 7 storage and 12 uniform buffers; 8 and 2 are needed");
  EXPECT_EQ(refusal({.uniform_buffers = 1}),
            name + "a kernel can have 8 storage and 1 uniform buffers; 8 and 2 are needed");
  EXPECT_EQ(refusal({.lanes = 128}), name + "its groups have at most 128 lanes, 256 are needed");
  EXPECT_EQ(refusal({.lanes_x = 64}), name + "its groups have at most 64 lanes, 256 are needed");
  EXPECT_EQ(refusal({.shared = 8192}), name + "its groups share at most 8192 bytes, 16384 are needed");
  for (uint32_t alignment : {0u, 48u, 512u})
    EXPECT_NE(refusal({.alignment = alignment}).find("powers of two up to 256"), std::string::npos);
}

// What WebGPU promises is enough; what an adapter has beyond it is asked for, and told.
TEST(WebGpuAbsent, LimitsAreTheAdapters) {
  fake = {};
  std::unique_ptr<Gpu> gpu;
  ASSERT_FALSE(Gpu::open(fake_api(), &gpu));
  EXPECT_EQ(gpu->facts().max_binding_bytes, uint64_t(128) << 20);
  EXPECT_EQ(gpu->facts().max_allocation_bytes, uint64_t(256) << 20);
  EXPECT_EQ(gpu->facts().binding_alignment, 256u);
  EXPECT_EQ(gpu->facts().max_groups, 65535u);
  EXPECT_FALSE(gpu->facts().software || gpu->facts().unified_memory);
  EXPECT_EQ(gpu->facts().memory_total, uint64_t(4) << 30);  // the interface has no such number
  EXPECT_EQ(gpu->facts().name, "Fake GPU");
  EXPECT_EQ(gpu->facts().driver, "Dawn over Vulkan: driver 1.2");
  fake = {.type = kCpu, .alignment = 16, .binding = (uint64_t(3) << 30) + 2, .buffer = uint64_t(1) << 40};
  ASSERT_FALSE(Gpu::open(fake_api(), &gpu));
  EXPECT_EQ(asked.storage_binding_bytes, (uint64_t(3) << 30) + 2);
  EXPECT_EQ(gpu->facts().max_binding_bytes, uint64_t(3) << 30);
  EXPECT_EQ(gpu->facts().binding_alignment, 16u);
  EXPECT_TRUE(gpu->facts().software && gpu->facts().unified_memory);
}

// The library with no driver. Where there is no library either, that is said.
TEST(WebGpuAbsent, TheBackendSaysWhy) {
  setenv("VK_DRIVER_FILES", "/nonexistent.json", 1), setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
  EXPECT_EQ(device_count(), 0);
  const bool library = !loading("");
  const char* code = library ? reason::kNoDevice : reason::kLibraryMissing;
  std::unique_ptr<gpu::Runtime> runtime;
  const Failure f = open(0, {}, &runtime);
  std::printf("%s\n", f.text.c_str());
  expect_refusal(f, code, {library ? "found no adapter: " : "no WebGPU library can be opened", "\nInstall"});
  EXPECT_EQ(runtime, nullptr);
  for (const BackendReport& r : discover_backends())
    if (r.backend == "webgpu") { EXPECT_EQ(r.reason, code); }
  auto opened = open_device({"webgpu", 0, true, ""});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("WebGPU library"), std::string::npos) << opened.error().message;
  EXPECT_STREQ(opened.error().reason, code);
}

}  // namespace
}  // namespace gimbal::webgpu
