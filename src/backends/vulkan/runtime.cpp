#include "backends/vulkan/runtime.h"

#include <algorithm>
#include <cstring>

#include "backends/vulkan/glsl_compiler.h"
#include "backends/vulkan/memory.h"
#include "base/format.h"
#include "gpu/launch_check.h"
#include "gpu/probes.h"

namespace gimbal::gpu {
std::span<const KernelCode> probe_spirv_modules();
}

namespace gimbal::vulkan {
namespace {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr uint32_t kDescriptors = gpu::kMaxBindings + 1;
static_assert(gpu::kStepBinding == gpu::kMaxBindings,
              "the step data are the last storage buffer of the layout");

struct GpuKernel : gpu::Kernel {
  gpu::KernelCode facts;
  VkPipeline pipeline = nullptr;
};

struct GpuRecording : gpu::Recording {
  VkDescriptorPool descriptors = nullptr;
  VkCommandBuffer commands = nullptr;
};

GpuBuffer& buffer(gpu::Buffer* b) { return *static_cast<GpuBuffer*>(b); }
uint64_t size_of(gpu::Buffer* b) { return buffer(b).bytes; }

class Vulkan final : public gpu::Runtime {
 public:
  Vulkan(std::unique_ptr<Gpu> gpu, const Options& o)
      : options_(o), gpu_(std::move(gpu)), memory_(*gpu_, o.staging) {
    const Candidate& c = gpu_->facts();
    facts_.name = c.name, facts_.driver = c.driver, facts_.pci_id = c.pci_id;
    facts_.compute_capability =
        format("Vulkan {}.{}", VK_API_VERSION_MAJOR(c.version), VK_API_VERSION_MINOR(c.version));
    if (c.subgroup_lanes > 1) facts_.driver += format(", sub-groups of {}", c.subgroup_lanes);
    // Drivers round up requested sizes.
    facts_.max_allocation_bytes = c.largest_allocation - std::min<uint64_t>(c.largest_allocation, 1 << 16);
    facts_.memory_total = memory_.total();
    facts_.max_binding_bytes = c.limits.maxStorageBufferRange & ~3u;
    if (o.max_binding)
      facts_.max_binding_bytes = std::min(facts_.max_binding_bytes, o.max_binding & ~uint64_t(3));
    facts_.binding_alignment = uint32_t(std::max<uint64_t>(4, c.limits.minStorageBufferOffsetAlignment));
    facts_.max_groups =
        *std::min_element(c.limits.maxComputeWorkGroupCount, c.limits.maxComputeWorkGroupCount + 3);
    facts_.software = c.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    facts_.unified_memory = facts_.software || c.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  }
  ~Vulkan() override {
    (void)gpu_->wait_for_all();
    for (auto& k : kernels_) vk().vkDestroyPipeline(device(), k->pipeline, nullptr);
    vk().vkDestroyPipelineCache(device(), cache_, nullptr);
    vk().vkDestroyPipelineLayout(device(), layout_, nullptr);
    vk().vkDestroyDescriptorSetLayout(device(), set_layout_, nullptr);
  }

  Failure start() {
    VkDescriptorSetLayoutBinding bindings[kDescriptors] = {};
    for (uint32_t i = 0; i < kDescriptors; i++)
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set.bindingCount = kDescriptors, set.pBindings = bindings;
    if (Failure f = check(vk().vkCreateDescriptorSetLayout(device(), &set, nullptr, &set_layout_),
                          "vkCreateDescriptorSetLayout"))
      return f;
    const VkPushConstantRange params = {VK_SHADER_STAGE_COMPUTE_BIT, 0, gpu::kMaxParamBytes};
    VkPipelineLayoutCreateInfo layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1, layout.pSetLayouts = &set_layout_;
    layout.pushConstantRangeCount = 1, layout.pPushConstantRanges = &params;
    if (Failure f = check(vk().vkCreatePipelineLayout(device(), &layout, nullptr, &layout_),
                          "vkCreatePipelineLayout"))
      return f;
    VkPipelineCacheCreateInfo cache = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    if (Failure f =
            check(vk().vkCreatePipelineCache(device(), &cache, nullptr, &cache_), "vkCreatePipelineCache"))
      return f;
    return said({});
  }

  const gpu::Facts& facts() override {
    facts_.memory_free = memory_.free();
    return facts_;
  }

  Failure allocate(uint64_t bytes, gpu::Buffer** out) override {
    GpuBuffer* b = nullptr;
    if (Failure f = said(memory_.allocate(bytes, &b))) return memory_.release(b), f;
    *out = b;
    return {};
  }
  void release(gpu::Buffer* b) override { memory_.release(static_cast<GpuBuffer*>(b)); }
  Failure write(gpu::Buffer* b, uint64_t offset, const void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, size_of(b))) return f;
    return said(memory_.write(buffer(b), offset, data, bytes));
  }
  Failure read(gpu::Buffer* b, uint64_t offset, void* data, uint64_t bytes) override {
    if (Failure f = gpu::check_inside(offset, bytes, size_of(b))) return f;
    return said(memory_.read(buffer(b), offset, data, bytes));
  }

  Failure load(const gpu::KernelCode& code, gpu::Kernel** out) override {
    for (auto& k : kernels_)
      if (k->facts.code.data() == code.code.data()) return *out = k.get(), Failure{};
    if (!asked_)
      if (Failure f = ask()) return f;
    return said(make(code, out));
  }

  Failure compile(std::string_view text, std::vector<uint8_t>* code) override {
    return compile_glsl(options_.shaderc, text, code);
  }

  Failure record(std::span<const gpu::Launch> launches, gpu::Recording** out) override {
    for (const gpu::Launch& l : launches) {
      if (!l.kernel) return {Failure::Invalid, "a launch without a kernel"};
      if (Failure f = gpu::check_launch(facts_, static_cast<GpuKernel*>(l.kernel)->facts, l, size_of))
        return f;
    }
    auto r = std::make_unique<GpuRecording>();
    if (Failure f = said(record(launches, *r))) return drop(*r), f;
    *out = r.release();
    return {};
  }
  void discard(gpu::Recording* r) override {
    if (!r) return;
    (void)gpu_->wait_for_all();
    drop(*static_cast<GpuRecording*>(r));
    delete static_cast<GpuRecording*>(r);
  }
  Failure replay(gpu::Recording* r) override {
    return said(gpu_->submit(static_cast<GpuRecording*>(r)->commands));
  }
  Failure wait() override { return said(gpu_->wait_for_all()); }

 private:
  const VolkDeviceTable& vk() const { return gpu_->vk(); }
  VkDevice device() const { return gpu_->device(); }
  Failure check(VkResult r, const char* call) { return gpu_->check(r, call); }

  // A message of the validation layer is a Failure as well.
  Failure said(Failure f) {
    if (!options_.validation) return f;
    std::string complaint = gpu_->complaint();
    if (f || complaint.empty()) return f;
    return {Failure::Invalid, "the validation layer reports: " + complaint};
  }

  Failure make(const gpu::KernelCode& code, gpu::Kernel** out) {
    const VkPhysicalDeviceLimits& limits = gpu_->facts().limits;
    if (code.lanes > limits.maxComputeWorkGroupInvocations || code.lanes > limits.maxComputeWorkGroupSize[0])
      return {
          Failure::Unsupported,
          format("kernel {} has groups of {} lanes; {} takes at most {}", code.name, code.lanes, facts_.name,
                 std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]))};
    const uint32_t subgroup = facts_.subgroup_lanes;
    const bool exchanges = code.trees && subgroup > 1 && code.lanes % subgroup == 0;
    const std::span<const uint8_t> words = exchanges ? code.subgroup_code : code.code;
    VkShaderModuleCreateInfo module = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module.codeSize = words.size(), module.pCode = reinterpret_cast<const uint32_t*>(words.data());
    VkShaderModule made = nullptr;
    if (Failure f =
            check(vk().vkCreateShaderModule(device(), &module, nullptr, &made), "vkCreateShaderModule"))
      return of(code, f);
    // fma_is_fused and subgroup_lanes in dialect/glsl.h
    const uint32_t values[2] = {fused_ ? VK_TRUE : VK_FALSE, subgroup};
    const VkSpecializationMapEntry at[2] = {{0, 0, 4}, {1, 4, 4}};
    const VkSpecializationInfo constants = {exchanges ? 2u : 1u, at, sizeof values, values};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size = {
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT};
    size.requiredSubgroupSize = subgroup;
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  nullptr,
                  0,
                  VK_SHADER_STAGE_COMPUTE_BIT,
                  made,
                  "main",
                  &constants};
    if (exchanges) {  // each full, of the size that the text counts with
      info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
      if (gpu_->facts().subgroup_may_be_required) info.stage.pNext = &size;
    }
    info.layout = layout_;
    auto k = std::make_unique<GpuKernel>();
    k->facts = code;
    Failure f = check(vk().vkCreateComputePipelines(device(), cache_, 1, &info, nullptr, &k->pipeline),
                      "vkCreateComputePipelines");
    vk().vkDestroyShaderModule(device(), made, nullptr);
    if (f) return of(code, f);
    *out = kernels_.emplace_back(std::move(k)).get();
    return {};
  }
  static Failure of(const gpu::KernelCode& code, Failure f) {
    f.text = format("kernel {}: {}", code.name, f.text);
    return f;
  }

  Failure record(std::span<const gpu::Launch> launches, GpuRecording& r) {
    const auto count = uint32_t(std::max<size_t>(1, launches.size()));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count * kDescriptors};
    VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = count, pool.poolSizeCount = 1, pool.pPoolSizes = &size;
    if (Failure f = check(vk().vkCreateDescriptorPool(device(), &pool, nullptr, &r.descriptors),
                          "vkCreateDescriptorPool"))
      return f;
    if (Failure f = gpu_->make_commands(&r.commands)) return f;
    // It may be replayed while it runs.
    if (Failure f = gpu_->begin(r.commands, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT)) return f;
    gpu_->barrier(r.commands, kCompute | kTransfer, kCompute,
                  VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    VkPipeline bound = nullptr;
    for (size_t i = 0; i < launches.size(); i++) {
      const gpu::Launch& l = launches[i];
      const GpuKernel& k = *static_cast<GpuKernel*>(l.kernel);
      VkDescriptorSet set = nullptr;
      if (Failure f = bind(r, l, k, &set)) return f;
      if (l.after_all && i)
        gpu_->barrier(r.commands, kCompute, kCompute, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
      if (bound != k.pipeline)
        vk().vkCmdBindPipeline(r.commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound = k.pipeline);
      vk().vkCmdBindDescriptorSets(r.commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set, 0,
                                   nullptr);
      vk().vkCmdPushConstants(r.commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              (k.facts.param_bytes + 3) & ~3u, l.params);
      vk().vkCmdDispatch(r.commands, l.groups[0], l.groups[1], l.groups[2]);
    }
    gpu_->barrier(r.commands, kCompute, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    return gpu_->end(r.commands);
  }

  Failure bind(GpuRecording& r, const gpu::Launch& l, const GpuKernel& k, VkDescriptorSet* set) {
    VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    info.descriptorPool = r.descriptors, info.descriptorSetCount = 1, info.pSetLayouts = &set_layout_;
    if (Failure f = check(vk().vkAllocateDescriptorSets(device(), &info, set), "vkAllocateDescriptorSets"))
      return f;
    VkDescriptorBufferInfo buffers[kDescriptors];
    VkWriteDescriptorSet writes[kDescriptors];
    uint32_t n = 0;
    auto add = [&](uint32_t binding, const gpu::Binding& b) {
      buffers[n] = {buffer(b.buffer).handle, b.offset, b.bytes};
      writes[n] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      writes[n].dstSet = *set, writes[n].dstBinding = binding, writes[n].descriptorCount = 1;
      writes[n].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, writes[n].pBufferInfo = &buffers[n];
      n++;
    };
    for (uint32_t i = 0; i < k.facts.bindings; i++) add(i, l.binding[i]);
    add(gpu::kStepBinding, l.step);
    vk().vkUpdateDescriptorSets(device(), n, writes, 0, nullptr);
    return {};
  }

  void drop(GpuRecording& r) {
    vk().vkDestroyDescriptorPool(device(), r.descriptors, nullptr);
    gpu_->free_commands(r.commands);
  }

  // Tests properties that Vulkan leaves open. Only the probes are loaded meanwhile.
  Failure ask() {
    asked_ = true;
    bool fused = !options_.split_fma, right = false;
    Failure f;
    if (fused) f = gpu::probe_fma(*this, gpu::probe_spirv_modules(), &fused);
    fused_ = fused;
    if (!f && (facts_.subgroup_lanes = gpu_->facts().subgroup_lanes) > 1) {
      f = gpu::probe_lanes(*this, gpu::probe_spirv_modules(), &right);
      if (!right) facts_.subgroup_lanes = 1;
    }
    asked_ = !f;
    return f;
  }

  const Options options_;
  std::unique_ptr<Gpu> gpu_;
  Memory memory_;
  gpu::Facts facts_;
  VkDescriptorSetLayout set_layout_ = nullptr;
  VkPipelineLayout layout_ = nullptr;
  VkPipelineCache cache_ = nullptr;
  std::vector<std::unique_ptr<GpuKernel>> kernels_;
  bool asked_ = false;
  bool fused_ = true;
};

}  // namespace

int device_count() {
  std::unique_ptr<Instance> instance;
  std::vector<Candidate> all;
  if (Instance::open({}, &instance) || instance->devices(&all)) return 0;
  Instance::keep(std::move(instance));
  return int(std::count_if(all.begin(), all.end(), [](const Candidate& c) { return c.refusal.empty(); }));
}

Failure open(int index, const Options& options, std::unique_ptr<gpu::Runtime>* out) {
  std::unique_ptr<Gpu> gpu;
  if (Failure f = Gpu::open(index, options, &gpu)) return f;
  auto vulkan = std::make_unique<Vulkan>(std::move(gpu), options);
  if (Failure f = vulkan->start()) return f;
  *out = std::move(vulkan);
  return {};
}

}  // namespace gimbal::vulkan
