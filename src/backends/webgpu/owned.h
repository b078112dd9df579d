// WebGPU's objects as values that release themselves.
#pragma once
#include <utility>

#include "backends/webgpu/api.h"

namespace gimbal::webgpu {

// Release: the member of Api that gives a Handle back. The Api outlives the object.
template <class Handle, auto Release>
class Owned {
 public:
  Owned() = default;
  Owned(const Api& api, Handle h) : api_(&api), handle_(h) {}
  Owned(Owned&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_), std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_) (api_->*Release)(handle_);
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  const Api* api_ = nullptr;
  Handle handle_ = nullptr;
};

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
