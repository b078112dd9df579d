#include "backends/metal/backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/metal/memory.h"
#include "backends/metal/programs.h"
#include "base/format.h"
#include "device/reason.h"
#include "gpu/launch_check.h"

namespace gimbal::metal {
namespace {

constexpr uint64_t kMaxBindingBytes = uint64_t(4) << 30;  // kernels count words in 32 bits
constexpr uint32_t kLanes = 256, kSharedBytes = 16384;    // most that a kernel needs

struct MetalKernel : gpu::Kernel {
  gpu::KernelCode facts;
  Owned<id<MTLComputePipelineState>> pipeline;
};
struct LaunchList : gpu::Recording {
  std::vector<gpu::Launch> launches;
};

MetalBuffer& buffer(gpu::Buffer* b) { return *static_cast<MetalBuffer*>(b); }
uint64_t size_of(gpu::Buffer* b) { return buffer(b).bytes; }
const MetalKernel& kernel(gpu::Kernel* k) { return *static_cast<MetalKernel*>(k); }

class Metal final : public gpu::Runtime {
 public:
  Metal(Owned<id<MTLDevice>> device, const Options& o)
      : device_(std::move(device)), queue_(device_.get()), memory_(device_.get(), queue_, o.staging) {
    facts_.name = text_of([device_.get() name]);
    facts_.driver = "Metal of " + text_of([[NSProcessInfo processInfo] operatingSystemVersionString]);
    facts_.memory_total = memory_.total();
    facts_.max_binding_bytes = std::min<uint64_t>([device_.get() maxBufferLength] / 4 * 4, kMaxBindingBytes);
    facts_.unified_memory = [device_.get() hasUnifiedMemory];
  }

  ~Metal() override {
    @autoreleasepool {
      (void)queue_.wait();
    }
  }

  Failure start() {
    const NSUInteger lanes = [device_.get() maxThreadsPerThreadgroup].width,
                     shared = [device_.get() maxThreadgroupMemoryLength];
    if (lanes < kLanes || shared < kSharedBytes)
      return {
          Failure::Unsupported,
          format(
              "Metal device '{}' holds groups of {} lanes with {} shared bytes; the kernels need {} and {}",
              facts_.name, lanes, shared, kLanes, kSharedBytes)};
    return queue_.start();
  }

  const gpu::Facts& facts() override {
    facts_.memory_free = memory_.free();
    return facts_;
  }

  Failure allocate(uint64_t bytes, gpu::Buffer** out) override {
    @autoreleasepool {
      MetalBuffer* b = nullptr;
      if (Failure f = memory_.allocate(bytes, &b)) return f;
      *out = b;
      return {};
    }
  }
  void release(gpu::Buffer* b) override {
    @autoreleasepool {
      memory_.release(static_cast<MetalBuffer*>(b));
    }
  }
  Failure write(gpu::Buffer* b, uint64_t offset, const void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, size_of(b))) return f;
    @autoreleasepool {
      return memory_.write(buffer(b), offset, data, bytes);
    }
  }
  Failure read(gpu::Buffer* b, uint64_t offset, void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, size_of(b))) return f;
    @autoreleasepool {
      return memory_.read(buffer(b), offset, data, bytes);
    }
  }

  Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    for (auto& k : kernels_)
      if (k->facts.code.data() == code.code.data()) return *out = k.get(), Failure{};
    @autoreleasepool {
      if (queue_.lost()) return queue_.lost();
      auto k = std::make_unique<MetalKernel>();
      k->facts = code;
      if (Failure f = metal::compile(device_.get(), code, &k->pipeline)) return f;
      *out = kernels_.emplace_back(std::move(k)).get();
      return {};
    }
  }

  // Metal's command buffers run only once, so a recording is the checked list of launches.
  Failure record(std::span<const gpu::Launch> launches, gpu::Recording** out) override {
    for (const gpu::Launch& l : launches) {
      if (!l.kernel) return {Failure::Invalid, "a launch without a kernel"};
      if (Failure f = gpu::check_launch(facts_, kernel(l.kernel).facts, l, size_of)) return f;
    }
    auto r = std::make_unique<LaunchList>();
    r->launches.assign(launches.begin(), launches.end());
    *out = r.release();
    return {};
  }
  void discard(gpu::Recording* r) override { delete static_cast<LaunchList*>(r); }

  Failure replay(gpu::Recording* r) override {
    @autoreleasepool {
      Owned<id<MTLCommandBuffer>> commands;
      if (Failure f = queue_.begin(&commands)) return f;
      id<MTLComputeCommandEncoder> encoder =
          [commands.get() computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
      if (!encoder)
        return {Failure::OutOfMemory, format("Metal device '{}' creates no encoder", facts_.name)};
      encode(static_cast<LaunchList*>(r)->launches, encoder);
      [encoder endEncoding];
      return queue_.submit(commands.get());
    }
  }
  Failure wait() override {
    @autoreleasepool {
      return queue_.wait();
    }
  }

 private:
  static void encode(const std::vector<gpu::Launch>& launches, id<MTLComputeCommandEncoder> encoder) {
    id<MTLComputePipelineState> set = nil;
    for (size_t i = 0; i < launches.size(); i++) {
      const gpu::Launch& l = launches[i];
      const MetalKernel& k = kernel(l.kernel);
      if (l.after_all && i) [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
      if (set != k.pipeline.get()) [encoder setComputePipelineState:set = k.pipeline.get()];
      auto bind = [&](const gpu::Binding& b, uint32_t at) {
        [encoder setBuffer:buffer(b.buffer).memory.get() offset:b.offset atIndex:at];
      };
      for (uint32_t n = 0; n < k.facts.bindings; n++) bind(l.binding[n], n);
      bind(l.step, gpu::kStepBinding);
      [encoder setBytes:l.params length:k.facts.param_bytes atIndex:gpu::kParamsBinding];
      [encoder dispatchThreadgroups:MTLSizeMake(l.groups[0], l.groups[1], l.groups[2])
              threadsPerThreadgroup:MTLSizeMake(k.facts.lanes, 1, 1)];
    }
  }

  const Owned<id<MTLDevice>> device_;
  Queue queue_;
  Memory memory_;
  gpu::Facts facts_;
  std::vector<std::unique_ptr<MetalKernel>> kernels_;
};

// The system's own choice first.
std::vector<Owned<id<MTLDevice>>> devices() {
  std::vector<Owned<id<MTLDevice>>> all;
  const Owned<id<MTLDevice>> chosen(MTLCreateSystemDefaultDevice());
  const Owned<NSArray<id<MTLDevice>>*> found(MTLCopyAllDevices());
  if (chosen) all.push_back(Owned<id<MTLDevice>>::also(chosen.get()));
  for (NSUInteger i = 0; i < [found.get() count]; i++) {
    id<MTLDevice> device = [found.get() objectAtIndex:i];
    if (!chosen || [device registryID] != [chosen.get() registryID])
      all.push_back(Owned<id<MTLDevice>>::also(device));
  }
  return all;
}

}  // namespace

int device_count() {
  @autoreleasepool {
    return int(devices().size());
  }
}

Failure open(int index, const Options& options, std::unique_ptr<gpu::Runtime>* out) {
  @autoreleasepool {
    auto all = devices();
    if (all.empty())
      return {Failure::Unsupported,
              "macOS reports no GPU that Metal can use\nrun it in a session of a user on a Mac with macOS 11 "
              "or newer, not in a virtual machine without a GPU",
              reason::kNoDevice};
    if (index < 0 || size_t(index) >= all.size())
      return {Failure::Unsupported, format("there is no Metal device {}; there are {}", index, all.size()),
              reason::kNoDevice};
    auto metal = std::make_unique<Metal>(std::move(all[size_t(index)]), options);
    if (Failure f = metal->start()) return f;
    *out = std::move(metal);
    return {};
  }
}

}  // namespace gimbal::metal
