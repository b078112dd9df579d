#include "backends/opencl/runtime.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/format.h"
#include "device/reason.h"
#include "gpu/launch_check.h"
#include "gpu/probes.h"

namespace gimbal::gpu {
std::span<const KernelCode> probe_opencl_modules();
}

namespace gimbal::opencl {
namespace {

constexpr uint32_t kOrigins = gpu::kStepBinding + 1;  // the dialect's struct Origins
constexpr size_t kZeros = 16;                         // bytes that memory is filled with at a time

struct DeviceMemory : gpu::Buffer {
  Memory memory;
  uint64_t bytes = 0, taken = 0;  // as requested; as allocated
};

struct BuiltKernel : gpu::Kernel {
  gpu::KernelCode facts;
  Program program;
  std::string name;  // ends in a zero byte
};

// A kernel object of its own, so that its arguments are set once.
struct ReadyLaunch {
  KernelObject kernel;
  const BuiltKernel* built;
  size_t items[3], group[3];
};
struct LaunchList : gpu::Recording {
  std::vector<ReadyLaunch> launches;
};

DeviceMemory& memory(gpu::Buffer* b) { return *static_cast<DeviceMemory*>(b); }

class Device final : public Opencl {
 public:
  Device(const Api& api, const Described& d) : api_(api), described_(d), facts_(d.facts) {}
  ~Device() override {
    if (queue_) (void)api_.clFinish(queue_.get());
  }

  Failure start(const Found& found, const Options& options) {
    cl_int e = CL_SUCCESS;
    const cl_context_properties wanted[] = {CL_CONTEXT_PLATFORM,
                                            reinterpret_cast<cl_context_properties>(found.platform), 0};
    context_ = Context(api_, api_.clCreateContext(wanted, 1, &found.id, nullptr, nullptr, &e));
    if (e != CL_SUCCESS) return failure(e, format("OpenCL device '{}': clCreateContext", facts_.name));
    queue_ = Queue(api_, api_.clCreateCommandQueue(context_.get(), found.id, 0, &e));
    if (e != CL_SUCCESS) return failure(e, format("OpenCL device '{}': clCreateCommandQueue", facts_.name));
    device_ = found.id;
    programs_ = std::make_unique<Programs>(api_, context_.get(), device_, described_.identity, options.cache);
    asked_ = options.no_subgroups || described_.subgroup_options.empty();
    return programs_->prepare();
  }

  const Programs::Counts& programs() const override { return programs_->counts(); }
  bool subgroups() const override { return subgroups_; }

  // OpenCL does not report the memory of other processes.
  const gpu::Facts& facts() override {
    facts_.memory_free = facts_.memory_total - std::min(facts_.memory_total, allocated_);
    return facts_;
  }

  Failure allocate(uint64_t bytes, gpu::Buffer** out) override {
    if (lost_) return lost_;
    if (bytes > facts().memory_free)
      return {Failure::OutOfMemory, format("{} bytes requested, {} are free", bytes, facts_.memory_free)};
    auto b = std::make_unique<DeviceMemory>();
    b->bytes = bytes, b->taken = align_up(std::max<uint64_t>(bytes, 1), kZeros);
    cl_int e = CL_SUCCESS;
    b->memory = Memory(api_, api_.clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, b->taken, nullptr, &e));
    if (e == CL_INVALID_BUFFER_SIZE)
      return {Failure::OutOfMemory,
              format("{} bytes requested; this driver allocates at most {} at once (clCreateBuffer: {})",
                     bytes, facts_.max_binding_bytes, name_of(e))};
    if (Failure f = failure(e, format("clCreateBuffer of {} bytes", bytes))) return f;
    // Drivers allocate memory at its first use: a lack of it must show now.
    const uint8_t zeros[kZeros] = {};
    e = api_.clEnqueueFillBuffer(queue_.get(), b->memory.get(), zeros, kZeros, 0, b->taken, 0, nullptr,
                                 nullptr);
    if (Failure f = seen(failure(e, format("clEnqueueFillBuffer of {} bytes", bytes)))) return f;
    if (e = api_.clFinish(queue_.get()); e == CL_MEM_OBJECT_ALLOCATION_FAILURE || e == CL_OUT_OF_HOST_MEMORY)
      return failure(e, format("{} bytes", bytes));
    if (Failure f = seen(failure_of_commands(e, "clFinish"))) return f;
    allocated_ += b->taken;
    *out = b.release();
    return {};
  }
  void release(gpu::Buffer* b) override {
    if (!b) return;
    allocated_ -= memory(b).taken;
    delete &memory(b);
  }

  Failure write(gpu::Buffer* b, uint64_t offset, const void* data, uint64_t bytes) override {
    if (lost_) return lost_;
    if (Failure f = gpu::check_inside(offset, bytes, memory(b).bytes)) return f;
    if (bytes == 0) return {};
    const cl_int e = api_.clEnqueueWriteBuffer(queue_.get(), memory(b).memory.get(), CL_TRUE, offset, bytes,
                                               data, 0, nullptr, nullptr);
    return seen(failure_of_commands(e, "clEnqueueWriteBuffer"));
  }
  Failure read(gpu::Buffer* b, uint64_t offset, void* data, uint64_t bytes) override {
    if (lost_) return lost_;
    if (Failure f = gpu::check_inside(offset, bytes, memory(b).bytes)) return f;
    if (bytes == 0) return {};
    const cl_int e = api_.clEnqueueReadBuffer(queue_.get(), memory(b).memory.get(), CL_TRUE, offset, bytes,
                                              data, 0, nullptr, nullptr);
    return seen(failure_of_commands(e, "clEnqueueReadBuffer"));
  }

  Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    if (lost_) return lost_;
    for (auto& k : kernels_)
      if (k->facts.code.data() == code.code.data() && k->facts.name == code.name)
        return *out = k.get(), Failure{};
    if (Failure f = ask()) return f;
    auto built = std::make_unique<BuiltKernel>();
    built->facts = code, built->name = code.name;
    const bool exchanges = code.trees && subgroups_;
    if (Failure f = programs_->build(code.name, exchanges ? code.subgroup_code : code.code,
                                     exchanges ? described_.subgroup_options : described_.build_options,
                                     &built->program))
      return seen(f);
    KernelObject kernel;  // is there a kernel of that name?
    if (Failure f = make(*built, &kernel)) return f;
    *out = kernels_.emplace_back(std::move(built)).get();
    return {};
  }

  Failure compile(std::string_view text, std::vector<uint8_t>* code) override {
    code->assign(text.begin(), text.end());  // load() takes texts
    return {};
  }

  Failure record(std::span<const gpu::Launch> launches, gpu::Recording** out) override {
    if (lost_) return lost_;
    auto list = std::make_unique<LaunchList>();
    list->launches.reserve(launches.size());
    for (const gpu::Launch& l : launches) {
      const auto* built = static_cast<const BuiltKernel*>(l.kernel);
      if (!built) return {Failure::Invalid, "a launch without a kernel"};
      if (Failure f =
              gpu::check_launch(facts_, built->facts, l, [](gpu::Buffer* b) { return memory(b).bytes; }))
        return f;
      ReadyLaunch ready{{}, built, {}, {built->facts.lanes, 1, 1}};
      for (int i = 0; i < 3; i++) ready.items[i] = ready.group[i] * l.groups[i];
      if (Failure f = make(*built, &ready.kernel)) return f;
      if (Failure f = set_arguments(l, ready)) return seen(f);
      list->launches.push_back(std::move(ready));
    }
    *out = list.release();
    return {};
  }
  void discard(gpu::Recording* r) override { delete static_cast<LaunchList*>(r); }

  // The queue is in order: each launch begins after those before it have ended, whether or not it must.
  Failure replay(gpu::Recording* r) override {
    if (lost_) return lost_;
    for (const ReadyLaunch& l : static_cast<LaunchList*>(r)->launches) {
      const cl_int e = api_.clEnqueueNDRangeKernel(queue_.get(), l.kernel.get(), 3, nullptr, l.items, l.group,
                                                   0, nullptr, nullptr);
      if (e != CL_SUCCESS) return not_launched(e, l);
    }
    return seen(failure(api_.clFlush(queue_.get()), "clFlush"));
  }
  Failure wait() override {
    if (lost_) return lost_;
    return seen(failure_of_commands(api_.clFinish(queue_.get()), "clFinish"));
  }

 private:
  // A device that is lost once stays lost.
  Failure seen(Failure f) {
    if (f.code == Failure::DeviceLost) {
      f.text = format("OpenCL device '{}' is lost: {}", facts_.name, f.text);
      lost_ = f;
    }
    return f;
  }

  // Sub-groups that the driver reports are tested once, before the first kernel. A driver that cannot compile
  // the probe, or joins other lanes, counts as one without sub-groups.
  Failure ask() {
    if (asked_) return {};
    asked_ = subgroups_ = true;
    bool right = false;
    const Failure f = gpu::probe_lanes(*this, gpu::probe_opencl_modules(), &right);
    subgroups_ = right;
    return f.code == Failure::DeviceLost || f.code == Failure::OutOfMemory ? f : Failure{};
  }

  Failure make(const BuiltKernel& built, KernelObject* out) {
    cl_int e = CL_SUCCESS;
    *out = KernelObject(api_, api_.clCreateKernel(built.program.get(), built.name.c_str(), &e));
    return seen(failure(e, format("kernel {}: clCreateKernel", built.name)));
  }

  // All kernels declare their number of lanes (reqd_work_group_size), so a driver that cannot run them
  // refuses to compile or to launch. The limit that it reports is no reason to refuse earlier: rusticl of
  // Mesa 22 reports 32, but runs 1024.
  Failure not_launched(cl_int e, const ReadyLaunch& l) {
    Failure f = failure(e, format("kernel {}: clEnqueueNDRangeKernel", l.built->name));
    size_t lanes = 0;
    if ((e == CL_INVALID_WORK_GROUP_SIZE || e == CL_OUT_OF_RESOURCES) &&
        api_.clGetKernelWorkGroupInfo(l.kernel.get(), device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof lanes,
                                      &lanes, nullptr) == CL_SUCCESS &&
        lanes < l.built->facts.lanes)
      f = {Failure::Unsupported,
           format("{}: a group has {} lanes, but the driver allows {}", f.text, l.built->facts.lanes, lanes)};
    return seen(f);
  }

  Failure set_arguments(const gpu::Launch& l, const ReadyLaunch& ready) {
    const gpu::KernelCode& code = ready.built->facts;
    cl_ulong origins[kOrigins] = {};
    cl_uint at = 0;
    cl_int e = CL_SUCCESS;
    auto set = [&](size_t bytes, const void* value) {
      if (e == CL_SUCCESS) e = api_.clSetKernelArg(ready.kernel.get(), at++, bytes, value);
    };
    auto bind = [&](const gpu::Binding& b, uint32_t i) {
      origins[i] = b.offset / 4;
      const cl_mem m = memory(b.buffer).memory.get();
      set(sizeof m, &m);
    };
    for (uint32_t i = 0; i < code.bindings; i++) bind(l.binding[i], i);
    bind(l.step, gpu::kStepBinding);
    set(sizeof origins, origins);
    set(code.param_bytes, l.params);
    return failure(e, format("kernel {}: clSetKernelArg of argument {}", code.name, at - 1));
  }

  const Api api_;
  const Described described_;
  gpu::Facts facts_;
  uint64_t allocated_ = 0;
  Failure lost_;
  cl_device_id device_ = nullptr;
  Context context_;
  Queue queue_;
  std::unique_ptr<Programs> programs_;
  std::vector<std::unique_ptr<BuiltKernel>> kernels_;
  bool asked_ = false, subgroups_ = false;
};

}  // namespace

Failure open(const Api& api, int index, const Options& options, std::unique_ptr<Opencl>* out) {
  std::vector<Found> found;
  if (Failure f = find_devices(api, &found)) return f;
  if (index < 0 || size_t(index) >= found.size())
    return {Failure::Unsupported, format("there is no OpenCL device {}; there are {}", index, found.size()),
            reason::kNoDevice};
  Described described;
  if (Failure f = describe(api, found[size_t(index)], &described)) return f;
  auto device = std::make_unique<Device>(api, described);
  if (Failure f = device->start(found[size_t(index)], options)) return f;
  *out = std::move(device);
  return {};
}

}  // namespace gimbal::opencl
