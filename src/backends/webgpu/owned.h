// RAII for WebGPU objects.
#pragma once
#include "backends/webgpu/api.h"
#include "gpu/owned.h"

namespace gimbal::webgpu {

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
