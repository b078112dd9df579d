// WebGPU's C interface as functions found at run time, and the part of its types that they need: own
// declarations after webgpu.h of Dawn, spring of 2025, so the build needs neither a header nor a library.
// Numbers are those of the header. The structs of wgpu-native have the same layout, except that Dawn appends
// fields to AdapterInfo and Limits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/webgpu/edition.h"
#include "gpu/owned.h"
#include "gpu/runtime.h"

namespace gimbal::webgpu {

using gpu::Failure;

using Instance = struct InstanceObject*;
using Adapter = struct AdapterObject*;
using Device = struct DeviceObject*;
using Queue = struct QueueObject*;
using GpuBuffer = struct BufferObject*;
using ShaderModule = struct ShaderModuleObject*;
using Pipeline = struct PipelineObject*;
using GroupLayout = struct GroupLayoutObject*;
using BindGroup = struct BindGroupObject*;
using Encoder = struct EncoderObject*;
using Pass = struct PassObject*;
using Commands = struct CommandsObject*;

constexpr uint32_t kSuccess = 1;  // of every status
constexpr uint32_t kNoError = 1;  // the other errors have the number of their filter (edition.h) and one more
constexpr uint64_t kMapRead = 1, kCopySource = 4, kCopyTarget = 8, kUniform = 64, kStorage = 128;
constexpr uint32_t kHighPerformance = 2, kCore = 2;
constexpr uint32_t kIntegratedGpu = 2, kCpu = 3;  // types of adapters

struct Text {
  const char* data = nullptr;
  size_t length = SIZE_MAX;  // of no text at all
  std::string_view view() const;
};
inline Text text(std::string_view s) { return {s.data(), s.size()}; }

struct Future {
  uint64_t id;
};
struct FutureWaitInfo {
  Future future;
  uint32_t completed;
};
struct Chained {
  const Chained* next;
  uint32_t type;
};
constexpr uint32_t kShaderSourceWgsl = 2;  // a Chained::type

// A callback: a function and its two pointers. The modes are above.
template <class... What>
struct Callback {
  const Chained* next = nullptr;
  uint32_t mode = kWaitAnyOnly;
  void (*call)(What..., void*, void*) = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};
using AdapterCallback = Callback<uint32_t, Adapter, Text>;
using DeviceCallback = Callback<uint32_t, Device, Text>;
using ScopeCallback = Callback<uint32_t, uint32_t, Text>;  // status, error
using MapCallback = Callback<uint32_t, Text>;
using DoneCallback = Callback<uint32_t>;
using LostCallback = Callback<const Device*, uint32_t, Text>;
struct ErrorCallback {  // may come at any time: it has no mode
  const Chained* next = nullptr;
  void (*call)(const Device*, uint32_t error, Text, void*, void*) = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};

struct InstanceDescriptor {  // Dawn's only: editions differ in it
  const Chained* next = nullptr;
  struct {
    const Chained* next = nullptr;
    uint32_t timed_wait = 1;  // wgpuInstanceWaitAny may wait
    size_t max_futures = 1;
  } capabilities;
};
struct RequestAdapterOptions {
  const Chained* next = nullptr;
  uint32_t level = kCore, power = kHighPerformance, fallback = 0, api = 0;
  void* surface = nullptr;
};
struct AdapterInfo {
  const Chained* next = nullptr;
  Text vendor, architecture, device, description;
  uint32_t api = 0, type = 0, vendor_id = 0, device_id = 0, min_subgroup = 0, max_subgroup = 0;
};
struct Limits {
  const Chained* next = nullptr;
  uint32_t texture_1d = 0, texture_2d = 0, texture_3d = 0, texture_layers = 0;
  uint32_t groups = 0, groups_and_vertex_buffers = 0, bindings_per_group = 0;
  uint32_t dynamic_uniform_buffers = 0, dynamic_storage_buffers = 0;
  uint32_t sampled_textures = 0, samplers = 0;
  uint32_t storage_buffers = 0, storage_textures = 0, uniform_buffers = 0;  // of a kernel
  uint64_t uniform_binding_bytes = 0, storage_binding_bytes = 0;
  uint32_t uniform_alignment = 0, storage_alignment = 0;  // of offsets
  uint32_t vertex_buffers = 0;
  uint64_t buffer_bytes = 0;
  uint32_t vertex_attributes = 0, vertex_stride = 0, stage_variables = 0, color_attachments = 0,
           color_bytes = 0;
  uint32_t shared_bytes = 0, lanes = 0, lanes_x = 0, lanes_y = 0, lanes_z = 0, grid = 0;
  uint32_t vertex_stage_buffers = 0, vertex_stage_textures = 0, fragment_stage_buffers = 0,
           fragment_stage_textures = 0;
  uint32_t later[16] =
      {};  // of later editions, which only append; the adapter's values there are passed back
};
struct DeviceDescriptor {
  const Chained* next = nullptr;
  Text label;
  size_t features = 0;
  const uint32_t* feature = nullptr;
  const Limits* limits = nullptr;
  struct {
    const Chained* next = nullptr;
    Text label;
  } queue;
  LostCallback lost;
  ErrorCallback error;
};
struct BufferDescriptor {
  const Chained* next = nullptr;
  Text label;
  uint64_t usage = 0, bytes = 0;
  uint32_t mapped = 0;
};
struct WgslSource {
  Chained chain;
  Text code;
};
struct ShaderModuleDescriptor {
  const Chained* next = nullptr;
  Text label;
};
struct Constant {
  const Chained* next = nullptr;
  Text key;
  double value = 0;
};
struct PipelineDescriptor {
  const Chained* next = nullptr;
  Text label;
  void* layout = nullptr;  // derived from the source
  const Chained* stage_next = nullptr;
  ShaderModule module = nullptr;
  Text entry;
  size_t constants = 0;
  const Constant* constant = nullptr;
};
struct BindGroupEntry {
  const Chained* next = nullptr;
  uint32_t binding = 0;
  GpuBuffer buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
  void *sampler = nullptr, *texture = nullptr;
};
struct BindGroupDescriptor {
  const Chained* next = nullptr;
  Text label;
  GroupLayout layout = nullptr;
  size_t entries = 0;
  const BindGroupEntry* entry = nullptr;
};

struct Api {
#define WEBGPU_FUNCTION(name, result, arguments) result(*name) arguments = nullptr;
#include "backends/webgpu/functions.def"
#undef WEBGPU_FUNCTION
  // Of wgpu-native, null elsewhere. Its result is a byte in some releases and a word in others.
  void (*wgpuDevicePoll)(Device, uint32_t wait, const void* submission) = nullptr;
  Edition edition;

  // `library`: a file; empty: the names under which Dawn is installed. It stays loaded until the process
  // ends. Fails (Unsupported) when there is none, or one that is not known (edition.h), with what to do.
  static Failure load(const std::string& library, Api* out);
};

// "a validation error: ..."; `doing`: "kernel rms_norm".
Failure failure(uint32_t error, std::string_view message, std::string_view doing);

// RAII for WebGPU objects.
template <class Handle, auto Release>
using Owned = gpu::Owned<Api, Handle, Release>;

using OwnedInstance = Owned<Instance, &Api::wgpuInstanceRelease>;
using OwnedAdapter = Owned<Adapter, &Api::wgpuAdapterRelease>;
using OwnedDevice = Owned<Device, &Api::wgpuDeviceRelease>;
using OwnedQueue = Owned<Queue, &Api::wgpuQueueRelease>;
using OwnedBuffer = Owned<GpuBuffer, &Api::wgpuBufferRelease>;
using OwnedModule = Owned<ShaderModule, &Api::wgpuShaderModuleRelease>;
using OwnedPipeline = Owned<Pipeline, &Api::wgpuComputePipelineRelease>;
using OwnedLayout = Owned<GroupLayout, &Api::wgpuBindGroupLayoutRelease>;
using OwnedGroup = Owned<BindGroup, &Api::wgpuBindGroupRelease>;
using OwnedEncoder = Owned<Encoder, &Api::wgpuCommandEncoderRelease>;
using OwnedPass = Owned<Pass, &Api::wgpuComputePassEncoderRelease>;
using OwnedCommands = Owned<Commands, &Api::wgpuCommandBufferRelease>;

}  // namespace gimbal::webgpu
