#include "backends/webgpu/runtime.h"

#include <algorithm>
#include <cstring>

#include "backends/webgpu/memory.h"
#include "base/format.h"
#include "device/reason.h"
#include "gpu/launch_check.h"
#include "gpu/probes.h"

namespace gimbal::gpu {
std::span<const KernelCode> probe_wgsl_modules();
}

namespace gimbal::webgpu {
namespace {

constexpr uint64_t kStepBytes = 8;
// A launch's parameters, and the word of zero behind them (dialect/wgsl.h), at the widest alignment there is.
constexpr uint64_t kParamsStride = 256;
static_assert(gpu::kMaxParamBytes + 4 <= kParamsStride);

struct BuiltKernel : gpu::Kernel {
  gpu::KernelCode facts;
  OwnedPipeline pipeline;
  OwnedLayout layout;
};

struct LaunchList : gpu::Recording {
  struct Ready {
    Pipeline pipeline;
    OwnedGroup group;
    uint32_t groups[3];
  };
  OwnedBuffer params;
  std::vector<Ready> launches;
};

uint64_t size_of(gpu::Buffer* b) { return static_cast<DeviceBuffer*>(b)->bytes; }

class WebGpu final : public gpu::Runtime {
 public:
  WebGpu(std::unique_ptr<Gpu> gpu, const Options& o)
      : options_(o), gpu_(std::move(gpu)), memory_(*gpu_), facts_(gpu_->facts()) {
    if (o.memory) facts_.memory_total = o.memory;
  }
  ~WebGpu() override { (void)gpu_->wait_for_all(); }

  Failure start() { return memory_.start(); }

  const gpu::Facts& facts() override {
    facts_.memory_free = facts_.memory_total - std::min(facts_.memory_total, memory_.allocated());
    return facts_;
  }

  Failure allocate(uint64_t bytes, gpu::Buffer** out) override {
    if (bytes > facts().memory_free)
      return {Failure::OutOfMemory,
              format("{}: {} bytes requested, {} are free", facts_.name, bytes, facts_.memory_free)};
    DeviceBuffer* b = nullptr;
    if (Failure f = memory_.allocate(bytes, &b)) return f;
    *out = b;
    return {};
  }
  void release(gpu::Buffer* b) override { memory_.release(static_cast<DeviceBuffer*>(b)); }
  Failure write(gpu::Buffer* b, uint64_t offset, const void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, size_of(b))) return f;
    return memory_.write(*static_cast<DeviceBuffer*>(b), offset, data, bytes);
  }
  Failure read(gpu::Buffer* b, uint64_t offset, void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, size_of(b))) return f;
    return memory_.read(*static_cast<DeviceBuffer*>(b), offset, data, bytes);
  }

  Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    for (auto& k : kernels_)
      if (k->facts.code.data() == code.code.data()) return *out = k.get(), Failure{};
    if (!asked_)
      if (Failure f = ask()) return f;
    return make(code, out);
  }

  Failure compile(std::string_view text, std::vector<uint8_t>* code) override {
    code->assign(text.begin(), text.end());  // load() takes texts
    return {};
  }

  Failure record(std::span<const gpu::Launch> launches, gpu::Recording** out) override {
    for (const gpu::Launch& l : launches) {
      if (!l.kernel) return {Failure::Invalid, "a launch without a kernel"};
      if (Failure f = gpu::check_launch(facts_, static_cast<BuiltKernel*>(l.kernel)->facts, l, size_of))
        return f;
    }
    auto list = std::make_unique<LaunchList>();
    gpu_->begin_scope();
    prepare(launches, *list);
    // WebGPU reports faults of a launch when its commands are finished: so now, not at the first replay.
    (void)commands_of(*list);
    if (Failure f = gpu_->end_scope(format("{} launches", launches.size()))) return f;
    *out = list.release();
    return {};
  }
  void discard(gpu::Recording* r) override { delete static_cast<LaunchList*>(r); }

  // Commands are valid for one submission, so they are recorded again. Each launch begins after the earlier
  // ones have ended.
  Failure replay(gpu::Recording* r) override {
    if (Failure f = gpu_->said({})) return f;
    const OwnedCommands commands = commands_of(*static_cast<LaunchList*>(r));
    if (Failure f = gpu_->said({})) return f;
    const Commands handle = commands.get();
    gpu_->api().wgpuQueueSubmit(gpu_->queue(), 1, &handle);
    return gpu_->said({});
  }
  Failure wait() override { return gpu_->wait_for_all(); }

 private:
  const Api& api() const { return gpu_->api(); }

  Failure make(const gpu::KernelCode& code, gpu::Kernel** out) {
    auto k = std::make_unique<BuiltKernel>();
    k->facts = code;
    gpu_->begin_scope();
    WgslSource source{
        {nullptr, kShaderSourceWgsl},
        text(std::string_view(reinterpret_cast<const char*>(code.code.data()), code.code.size()))};
    ShaderModuleDescriptor module_wanted;
    module_wanted.next = &source.chain;
    const OwnedModule module(api(), api().wgpuDeviceCreateShaderModule(gpu_->device(), &module_wanted));
    Constant fused;
    fused.key = text("fma_is_fused"), fused.value = fused_;
    PipelineDescriptor wanted;
    wanted.label = text(code.name);
    wanted.module = module.get(), wanted.entry = text("main");
    wanted.constants = 1, wanted.constant = &fused;
    k->pipeline = OwnedPipeline(api(), api().wgpuDeviceCreateComputePipeline(gpu_->device(), &wanted));
    k->layout = OwnedLayout(api(), api().wgpuComputePipelineGetBindGroupLayout(k->pipeline.get(), 0));
    if (Failure f = gpu_->end_scope(format("kernel {}", code.name))) return f;
    *out = kernels_.emplace_back(std::move(k)).get();
    return {};
  }

  void prepare(std::span<const gpu::Launch> launches, LaunchList& list) {
    std::vector<uint8_t> params(std::max<size_t>(1, launches.size()) * kParamsStride);
    list.params = memory_.make(params.size(), kUniform | kCopyTarget);
    list.launches.reserve(launches.size());
    for (size_t i = 0; i < launches.size(); i++) {
      const gpu::Launch& l = launches[i];
      const auto& k = *static_cast<const BuiltKernel*>(l.kernel);
      memcpy(params.data() + i * kParamsStride, l.params, k.facts.param_bytes);
      BindGroupEntry entries[gpu::kMaxBindings + 2];
      size_t n = 0;
      auto bind = [&](uint32_t binding, GpuBuffer buffer, uint64_t offset, uint64_t bytes) {
        BindGroupEntry& e = entries[n++];
        e.binding = binding, e.buffer = buffer, e.offset = offset, e.bytes = bytes;
      };
      auto handle = [](const gpu::Binding& b) { return static_cast<DeviceBuffer*>(b.buffer)->handle.get(); };
      for (uint32_t b = 0; b < k.facts.bindings; b++)
        bind(b, handle(l.binding[b]), l.binding[b].offset, l.binding[b].bytes);
      bind(gpu::kStepBinding, handle(l.step), l.step.offset, kStepBytes);
      bind(gpu::kParamsBinding, list.params.get(), i * kParamsStride, k.facts.param_bytes + 4);
      BindGroupDescriptor wanted;
      wanted.label = text(k.facts.name);
      wanted.layout = k.layout.get(), wanted.entries = n, wanted.entry = entries;
      OwnedGroup group(api(), api().wgpuDeviceCreateBindGroup(gpu_->device(), &wanted));
      list.launches.push_back({k.pipeline.get(), std::move(group), {l.groups[0], l.groups[1], l.groups[2]}});
    }
    api().wgpuQueueWriteBuffer(gpu_->queue(), list.params.get(), 0, params.data(), params.size());
  }

  OwnedCommands commands_of(const LaunchList& list) {
    const OwnedEncoder encoder(api(), api().wgpuDeviceCreateCommandEncoder(gpu_->device(), nullptr));
    const OwnedPass pass(api(), api().wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
    Pipeline set = nullptr;
    for (const LaunchList::Ready& l : list.launches) {
      if (l.pipeline != set) api().wgpuComputePassEncoderSetPipeline(pass.get(), set = l.pipeline);
      api().wgpuComputePassEncoderSetBindGroup(pass.get(), 0, l.group.get(), 0, nullptr);
      api().wgpuComputePassEncoderDispatchWorkgroups(pass.get(), l.groups[0], l.groups[1], l.groups[2]);
    }
    api().wgpuComputePassEncoderEnd(pass.get());
    return {api(), api().wgpuCommandEncoderFinish(encoder.get(), nullptr)};
  }

  // Tests a property that WGSL leaves open. Only the probe is loaded meanwhile.
  Failure ask() {
    asked_ = true;
    if (options_.split_fma) return fused_ = false, Failure{};
    const Failure f = gpu::probe_fma(*this, gpu::probe_wgsl_modules(), &fused_);
    asked_ = !f;
    return f;
  }

  const Options options_;
  std::unique_ptr<Gpu> gpu_;
  Memory memory_;
  gpu::Facts facts_;
  std::vector<std::unique_ptr<BuiltKernel>> kernels_;
  bool asked_ = false, fused_ = true;
};

}  // namespace

int device_count() {
  Api api;
  std::unique_ptr<Gpu> gpu;
  return Api::load("", &api) || Gpu::open(api, &gpu) ? 0 : 1;
}

Failure open(int index, const Options& options, std::unique_ptr<gpu::Runtime>* out) {
  if (index != 0)
    return {Failure::Unsupported, format("there is no WebGPU device {}: WebGPU offers one, number 0", index),
            reason::kNoDevice};
  Api api;
  if (Failure f = Api::load(options.library, &api)) return f;
  if (options.intercept) options.intercept(api);
  std::unique_ptr<Gpu> gpu;
  if (Failure f = Gpu::open(api, &gpu)) return f;
  auto runtime = std::make_unique<WebGpu>(std::move(gpu), options);
  if (Failure f = runtime->start()) return f;
  *out = std::move(runtime);
  return {};
}

}  // namespace gimbal::webgpu
