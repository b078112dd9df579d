#include "backends/webgpu/gpu.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::webgpu {
namespace {

// The maximum of the dialect's kernels.
constexpr uint32_t kLanes = 256, kSharedBytes = 16384, kMaxAlignment = 256;
// The assumed memory of a discrete card, which all have at least.
constexpr uint64_t kAssumedMemory = uint64_t(4) << 30;

constexpr uint32_t kComputesNothing = 1;  // an API for tests of Dawn: the only one without a driver
constexpr const char* kApis[] = {"",      "no device", "WebGPU", "Direct3D 11", "Direct3D 12",
                                 "Metal", "Vulkan",    "OpenGL", "OpenGL ES"};

Failure unsupported(std::string text) { return {Failure::Unsupported, std::move(text)}; }

Failure no_adapter(const Edition& edition, std::string_view why) {
  Failure f = unsupported(format(
      "the WebGPU library found no adapter: {}\nInstall the driver of your graphics card{}", why,
      edition.futures ? "; Dawn needs Vulkan 1.1 with dynamic indexing, which lavapipe has from Mesa 25 on"
                      : ""));
  f.reason = reason::kNoDevice;
  return f;
}

struct Answer {  // of a request
  uint32_t status = 0;
  void* handle = nullptr;
  std::string message;
};
template <class Handle>
void answered(uint32_t status, Handle h, Text message, void* out, void*) {
  *static_cast<Answer*>(out) = {status, h, std::string(message.view())};
}

uint64_t host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? uint64_t(pages) * uint64_t(bytes) : 0;
}

// Why the kernels cannot run; empty when they can.
std::string refusal_of(const Limits& l) {
  if (l.storage_buffers < gpu::kMaxBindings || l.uniform_buffers < 2)
    return format("a kernel can have {} storage and {} uniform buffers; {} and 2 are needed",
                  l.storage_buffers, l.uniform_buffers, gpu::kMaxBindings);
  if (l.lanes < kLanes || l.lanes_x < kLanes)
    return format("its groups have at most {} lanes, {} are needed", std::min(l.lanes, l.lanes_x), kLanes);
  if (l.shared_bytes < kSharedBytes)
    return format("its groups share at most {} bytes, {} are needed", l.shared_bytes, kSharedBytes);
  if (const uint32_t a = std::max(l.storage_alignment, l.uniform_alignment);
      !a || a > kMaxAlignment || (a & (a - 1)))
    return format("it binds buffers at multiples of {} bytes; powers of two up to {} are supported", a,
                  kMaxAlignment);
  return "";
}

}  // namespace

Failure Gpu::open(const Api& api, std::unique_ptr<Gpu>* out) {
  std::unique_ptr<Gpu> gpu(new Gpu(api));
  if (Failure f = gpu->find_adapter()) return f;
  if (Failure f = gpu->describe()) return f;
  if (Failure f = gpu->make_device()) return f;
  *out = std::move(gpu);
  return {};
}

Failure Gpu::find_adapter() {
  const InstanceDescriptor wanted;
  instance_ = OwnedInstance(api_, api_.wgpuCreateInstance(api_.edition.futures ? &wanted : nullptr));
  if (!instance_) return unsupported("the WebGPU library creates no instance (wgpuCreateInstance)");
  const RequestAdapterOptions options;
  Answer a;
  AdapterCallback callback;
  callback.mode = api_.edition.mode, callback.call = answered<Adapter>, callback.first = &a;
  if (Failure f = wait(api_.wgpuInstanceRequestAdapter(instance_.get(), &options, callback), a.status))
    return f;
  adapter_ = OwnedAdapter(api_, static_cast<Adapter>(a.handle));
  if (a.status == kSuccess && adapter_) return {};
  return no_adapter(api_.edition, a.message.empty() ? format("status {}", a.status) : a.message);
}

Failure Gpu::describe() {
  AdapterInfo info;
  if (api_.wgpuAdapterGetInfo(adapter_.get(), &info) != kSuccess)
    return unsupported("the WebGPU adapter does not describe itself (wgpuAdapterGetInfo)");
  if (info.api == kComputesNothing) {
    api_.wgpuAdapterInfoFreeMembers(info);
    return no_adapter(api_.edition, "only one that computes nothing");
  }
  facts_.name = info.device.view().empty() ? info.vendor.view() : info.device.view();
  const char* through = info.api < std::size(kApis) ? kApis[info.api] : "";
  facts_.driver = format("{} over {}: {}", api_.edition.name, *through ? through : "an unknown API",
                         info.description.view());
  facts_.software = info.type == kCpu;
  facts_.unified_memory = facts_.software || info.type == kIntegratedGpu;
  api_.wgpuAdapterInfoFreeMembers(info);
  if (api_.wgpuAdapterGetLimits(adapter_.get(), &limits_) != kSuccess)
    return unsupported(
        format("WebGPU adapter '{}' does not report its limits (wgpuAdapterGetLimits)", facts_.name));
  if (std::string why = refusal_of(limits_); !why.empty())
    return unsupported(format("WebGPU adapter '{}': {}", facts_.name, why));
  // WebGPU reports no size of memory. A lack of it shows as a failed allocation.
  facts_.memory_total =
      facts_.unified_memory ? host_memory() : std::max(kAssumedMemory, limits_.buffer_bytes);
  facts_.max_binding_bytes = std::min(limits_.storage_binding_bytes, limits_.buffer_bytes) / 4 * 4;
  facts_.max_allocation_bytes = limits_.buffer_bytes / 4 * 4;
  facts_.binding_alignment = std::max({4u, limits_.storage_alignment, limits_.uniform_alignment});
  facts_.max_groups = limits_.grid;
  return {};
}

// Requests all limits and features of the adapter: the defaults are the minimum that WebGPU guarantees.
Failure Gpu::make_device() {
  DeviceDescriptor wanted;
  wanted.limits = &limits_;
  wanted.lost.mode = kSpontaneous, wanted.lost.first = &heard_;
  wanted.lost.call = [](const Device*, uint32_t, Text message, void* heard, void*) {
    auto& h = *static_cast<Heard*>(heard);
    const std::lock_guard lock(h.mutex);
    h.lost = message.view().empty() ? "no reason given" : std::string(message.view());
  };
  wanted.error.first = &heard_;
  wanted.error.call = [](const Device*, uint32_t error, Text message, void* heard, void*) {
    auto& h = *static_cast<Heard*>(heard);
    const std::lock_guard lock(h.mutex);
    if (!h.complaint) h.complaint = failure(error, message.view(), "WebGPU");
  };
  Answer a;
  DeviceCallback callback;
  callback.mode = api_.edition.mode, callback.call = answered<Device>, callback.first = &a;
  if (Failure f = wait(api_.wgpuAdapterRequestDevice(adapter_.get(), &wanted, callback), a.status)) return f;
  device_ = OwnedDevice(api_, static_cast<Device>(a.handle));
  if (a.status != kSuccess || !device_)
    return unsupported(format("WebGPU adapter '{}' creates no device: {}", facts_.name, a.message));
  queue_ = OwnedQueue(api_, api_.wgpuDeviceGetQueue(device_.get()));
  return {};
}

Failure Gpu::wait(Future future, const uint32_t& answered) {
  if (api_.edition.futures) {
    FutureWaitInfo info{future, 0};
    const uint32_t status = api_.wgpuInstanceWaitAny(instance_.get(), 1, &info, UINT64_MAX);
    if (status == kSuccess) return {};
    return {Failure::Invalid, format("wgpuInstanceWaitAny failed with status {}", status)};
  }
  if (!answered && device_) api_.wgpuDevicePoll(device(), 1, nullptr);
  return answered ? Failure{} : Failure{Failure::Invalid, "the WebGPU library did not answer a request"};
}

// The callback's arguments differ between editions that export the same names, so it reads none: a lost
// device reports itself. Never wait for a lost device of wgpu-native: that ends the process.
Failure Gpu::wait_for_all() {
  if (api_.edition.futures) {
    DoneCallback callback;
    callback.call = [](uint32_t, void*, void*) {};
    return said(wait(api_.wgpuQueueOnSubmittedWorkDone(queue(), callback), kSuccess));
  }
  if (Failure f = said({})) return f;
  api_.wgpuDevicePoll(device(), 1, nullptr);
  return said({});
}

Failure Gpu::said(Failure f) {
  const std::lock_guard lock(heard_.mutex);
  if (!heard_.lost.empty()) return {Failure::DeviceLost, format("{} is lost: {}", facts_.name, heard_.lost)};
  if (f) return f;
  return std::exchange(heard_.complaint, {});
}

void Gpu::begin_scope() {
  for (uint32_t filter = 1; filter <= api_.edition.filters; filter++)
    api_.wgpuDevicePushErrorScope(device(), filter);
}

Failure Gpu::end_scope(std::string_view doing) {
  Failure first;
  for (uint32_t i = 0; i < api_.edition.filters; i++) {
    struct {
      uint32_t status = 0, error = kNoError;
      std::string message;
    } a;
    ScopeCallback callback;
    callback.mode = api_.edition.mode, callback.first = &a;
    callback.call = [](uint32_t status, uint32_t error, Text message, void* out, void*) {
      auto& answer = *static_cast<decltype(a)*>(out);
      answer.status = status, answer.error = error, answer.message = message.view();
    };
    if (Failure f = wait(api_.wgpuDevicePopErrorScope(device(), callback), a.status)) return said(f);
    if (a.status == kSuccess && !first) first = failure(a.error, a.message, doing);
  }
  return said(first);
}

}  // namespace gimbal::webgpu
