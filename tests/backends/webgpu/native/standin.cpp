// wgpu-native as its headers and sources describe it, in front of Dawn: what it does otherwise. Where the
// real one would end the process, this one does, but for submissions that fail. All other functions are
// looked up in Dawn itself, which this library needs. Its structures are declared anew, after the headers of
// wgpu-native STANDIN_VERSION; the sizes are what a compiler says of these headers. It shows that gimbal
// keeps to them, and nothing about the real library.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "backends/webgpu/api.h"

using namespace gimbal::webgpu;

namespace {

constexpr bool kStable = STANDIN_VERSION >= 29;  // the edition of 2026; else that of November 2024

struct Info2024 {
  void* next;
  Text vendor, architecture, device, description;
  uint32_t api, type, vendor_id, device_id;
};
struct Info2026 : Info2024 {
  uint32_t min_subgroup, max_subgroup;
};
using Info = std::conditional_t<kStable, Info2026, Info2024>;
struct NativeLimits {
  void* next;
  uint32_t texture[4], groups[3], dynamic[2], textures[2], buffers[3];
  uint64_t binding_bytes[2];
  uint32_t alignment[2], vertex_buffers;
  uint64_t buffer_bytes;
  uint32_t stages[5], shared_bytes, lanes[4], grid, immediate;  // the last of 2026
};
constexpr size_t kSharedLimits = offsetof(NativeLimits, immediate);
static_assert(sizeof(Info) == (kStable ? 96 : 88) && sizeof(NativeLimits) == 152 && kSharedLimits == 148);
static_assert(offsetof(Limits, grid) == offsetof(NativeLimits, grid) && offsetof(Limits, buffer_bytes) == 96);
static_assert(sizeof(RequestAdapterOptions) == 32 && sizeof(DeviceDescriptor) == 144 &&
              offsetof(DeviceDescriptor, lost) == 72 && offsetof(DeviceDescriptor, error) == 112 &&
              sizeof(BufferDescriptor) == 48 && sizeof(WgslSource) == 32 &&
              sizeof(ShaderModuleDescriptor) == 24 && sizeof(Constant) == 32 &&
              sizeof(PipelineDescriptor) == 80 && sizeof(BindGroupEntry) == 56 &&
              sizeof(BindGroupDescriptor) == 48 && sizeof(MapCallback) == 40 && sizeof(ErrorCallback) == 32);

[[noreturn]] void panic(const char* why) {
  std::fprintf(stderr, "wgpu-native's stand-in: %s\n", why);
  std::abort();
}

const Api& dawn() {
  static const Api api = [] {
    Api a;
    if (const auto f = Api::load("libwebgpu_dawn.so", &a)) panic(f.text.c_str());
    return a;
  }();
  return api;
}
// One for all, that stays: futures are waited for through it.
Instance instance() {
  static const Instance one = [] {
    const InstanceDescriptor wanted;
    return dawn().wgpuCreateInstance(&wanted);
  }();
  return one;
}
void wait(Future f) {
  FutureWaitInfo info{f, 0};
  if (dawn().wgpuInstanceWaitAny(instance(), 1, &info, UINT64_MAX) != kSuccess) panic("Dawn does not wait");
}
template <class C>
C waited(C callback) {
  if (callback.mode != kProcessEvents)
    panic("no future can be waited for: another mode of callbacks is needed");
  callback.mode = kWaitAnyOnly;
  return callback;
}

std::mutex mutex;
std::vector<Future> maps;  // to be told by wgpuDevicePoll

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT uint32_t wgpuGetVersion() { return STANDIN_VERSION << 24 | (STANDIN_VERSION == 27 ? 4 : 1) << 8; }

EXPORT Instance wgpuCreateInstance(const void* descriptor) {
  if (descriptor)
    panic("the descriptor of an instance differs between editions, and timed waits are unsupported");
  return instance();
}
EXPORT void wgpuInstanceRelease(Instance i) {
  if (!i) panic("invalid instance");
}
EXPORT uint32_t wgpuInstanceWaitAny(Instance, size_t, FutureWaitInfo*, uint64_t) { panic("not implemented"); }

EXPORT Future wgpuInstanceRequestAdapter(Instance i, const RequestAdapterOptions* o, AdapterCallback c) {
  wait(dawn().wgpuInstanceRequestAdapter(i, o, waited(c)));
  return {0};
}
EXPORT uint32_t wgpuAdapterGetInfo(Adapter a, Info* out) {
  AdapterInfo all;
  const uint32_t status = dawn().wgpuAdapterGetInfo(a, &all);
  memcpy(static_cast<void*>(out), &all, sizeof *out);
  return status;
}
EXPORT void wgpuAdapterInfoFreeMembers(Info info) {
  AdapterInfo all;
  memcpy(static_cast<void*>(&all), &info, sizeof info);
  dawn().wgpuAdapterInfoFreeMembers(all);
}
EXPORT uint32_t wgpuAdapterGetLimits(Adapter a, NativeLimits* out) {
  Limits all;
  const uint32_t status = dawn().wgpuAdapterGetLimits(a, &all);
  memcpy(static_cast<void*>(out), &all, kSharedLimits);
  if (kStable) out->immediate = 7;  // to come back
  return status;
}
EXPORT Future wgpuAdapterRequestDevice(Adapter a, const DeviceDescriptor* d, DeviceCallback c) {
  Limits all;
  dawn().wgpuAdapterGetLimits(a, &all);
  const auto* wanted = reinterpret_cast<const NativeLimits*>(d->limits);
  if (wanted->next) panic("limits of a chain that is not known");
  if (kStable && wanted->immediate != 7) panic("a limit is not the adapter's");
  memcpy(static_cast<void*>(&all), wanted, kSharedLimits);
  DeviceDescriptor its = *d;
  its.limits = &all;
  wait(dawn().wgpuAdapterRequestDevice(a, &its, waited(c)));
  return {0};
}
EXPORT void wgpuDevicePushErrorScope(Device d, uint32_t filter) {
  if (filter != kValidation && filter != kOutOfMemory) panic("invalid error filter");
  dawn().wgpuDevicePushErrorScope(d, filter);
}
EXPORT Future wgpuDevicePopErrorScope(Device d, ScopeCallback c) {
  wait(dawn().wgpuDevicePopErrorScope(d, waited(c)));
  return {0};
}
EXPORT Future wgpuBufferMapAsync(GpuBuffer b, uint64_t mode, size_t at, size_t bytes, MapCallback c) {
  const Future f = dawn().wgpuBufferMapAsync(b, mode, at, bytes, waited(c));
  const std::lock_guard lock(mutex);
  maps.push_back(f);
  return {0};
}
EXPORT Future wgpuQueueOnSubmittedWorkDone(Queue, DoneCallback) {
  panic("its callback differs between editions");
}
EXPORT uint32_t wgpuDevicePoll(Device d, uint32_t, const void* submission) {
  if (!d || submission) panic("invalid device, or a submission that nobody made");
  const Queue queue = dawn().wgpuDeviceGetQueue(d);
  DoneCallback done;
  done.call = [](uint32_t, void*, void*) {};
  wait(dawn().wgpuQueueOnSubmittedWorkDone(queue, done));
  dawn().wgpuQueueRelease(queue);
  std::vector<Future> all;
  {
    const std::lock_guard lock(mutex);
    all.swap(maps);
  }
  for (Future f : all) wait(f);
  return 0xff00;  // only the lowest byte of some releases means something
}
