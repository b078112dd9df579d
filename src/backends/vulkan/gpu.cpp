#include "backends/vulkan/gpu.h"

#include "base/format.h"
#include "device/reason.h"

namespace gimbal::vulkan {

Failure Gpu::open(int index, const Options& options, std::unique_ptr<Gpu>* out) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  if (Failure f = Instance::open(options, &gpu->instance_)) return f;
  std::vector<Candidate> all;
  if (Failure f = gpu->instance_->devices(&all)) return f;
  int usable = 0;
  std::string refused;
  bool too_old = false;
  for (Candidate& c : all) {
    too_old |= c.too_old;
    if (!c.refusal.empty()) refused += format("{}{}: {}", refused.empty() ? "" : "; ", c.name, c.refusal);
    else if (usable++ == index) gpu->facts_ = std::move(c);
  }
  if (index < 0 || index >= usable)
    return {Failure::Unsupported,
            format("Vulkan has {} usable devices, none with the number {}{}", usable, index,
                   refused.empty() ? "" : " (" + refused + ")\ninstall a newer graphics driver"),
            !usable && too_old ? reason::kDriverTooOld : reason::kNoDevice};
  if (options.no_subgroups) gpu->facts_.subgroup_lanes = 1;
  if (Failure f = gpu->make_device(options)) return f;
  *out = std::move(gpu);
  return {};
}

Failure Gpu::make_device(const Options& options) {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = facts_.queue_family, queue.queueCount = 1, queue.pQueuePriorities = &priority;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
  timeline.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  subgroups.subgroupSizeControl = subgroups.computeFullSubgroups = VK_TRUE;
  if (facts_.subgroup_lanes > 1) timeline.pNext = &subgroups;
  const char* extensions[2];
  VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timeline};
  info.queueCreateInfoCount = 1, info.pQueueCreateInfos = &queue;
  info.ppEnabledExtensionNames = extensions;
  if (facts_.memory_budget) extensions[info.enabledExtensionCount++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
  if (facts_.subgroup_lanes > 1)
    extensions[info.enabledExtensionCount++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
  if (Failure f = check(instance_->functions().create_device(facts_.handle, &info, nullptr, &device_),
                        "vkCreateDevice"))
    return f;
  volkLoadDeviceTable(&vk_, device_);
  if (options.intercept) options.intercept(vk_);
  vk_.vkGetDeviceQueue(device_, facts_.queue_family, 0, &queue_);

  VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, pool.queueFamilyIndex = facts_.queue_family;
  if (Failure f = check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool"))
    return f;
  VkSemaphoreTypeCreateInfo kind = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  kind.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &kind};
  return check(vk_.vkCreateSemaphore(device_, &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
}

Gpu::~Gpu() {
  if (!device_) return;
  (void)vk_.vkDeviceWaitIdle(device_);  // nothing to be done when it is lost
  vk_.vkDestroySemaphore(device_, timeline_, nullptr);
  vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

VkPhysicalDeviceMemoryProperties2 Gpu::memory(void* more) const {
  VkPhysicalDeviceMemoryProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, more};
  instance_->functions().memory(facts_.handle, &all);
  return all;
}

Failure Gpu::check(VkResult r, const char* call) {
  if (r == VK_SUCCESS) return {};
  Failure f = failure(r, call);
  f.text = facts_.name + ": " + f.text;
  if (f.code == Failure::DeviceLost && !lost_) {
    lost_ = f;
    // The last wait, before submitted work is released. Vulkan guarantees that it ends.
    if (vk_.vkDeviceWaitIdle) (void)vk_.vkDeviceWaitIdle(device_);
  }
  return f;
}

Failure Gpu::make_commands(VkCommandBuffer* out) {
  VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_, info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, info.commandBufferCount = 1;
  return check(vk_.vkAllocateCommandBuffers(device_, &info, out), "vkAllocateCommandBuffers");
}

void Gpu::free_commands(VkCommandBuffer c) {
  if (c) vk_.vkFreeCommandBuffers(device_, pool_, 1, &c);
}

Failure Gpu::begin(VkCommandBuffer c, VkCommandBufferUsageFlags usage) {
  VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = usage;
  return check(vk_.vkBeginCommandBuffer(c, &info), "vkBeginCommandBuffer");
}

Failure Gpu::end(VkCommandBuffer c) { return check(vk_.vkEndCommandBuffer(c), "vkEndCommandBuffer"); }

void Gpu::barrier(VkCommandBuffer c, VkPipelineStageFlags from, VkPipelineStageFlags to,
                  VkAccessFlags reads) const {
  VkMemoryBarrier b = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  if (from & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) b.srcAccessMask |= VK_ACCESS_SHADER_WRITE_BIT;
  if (from & VK_PIPELINE_STAGE_TRANSFER_BIT) b.srcAccessMask |= VK_ACCESS_TRANSFER_WRITE_BIT;
  b.dstAccessMask = reads;
  vk_.vkCmdPipelineBarrier(c, from, to, 0, 1, &b, 0, nullptr, 0, nullptr);
}

Failure Gpu::submit(VkCommandBuffer c) {
  if (lost_) return lost_;
  const uint64_t number = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo signal = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  signal.signalSemaphoreValueCount = 1, signal.pSignalSemaphoreValues = &number;
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &signal};
  info.commandBufferCount = 1, info.pCommandBuffers = &c;
  info.signalSemaphoreCount = 1, info.pSignalSemaphores = &timeline_;
  if (Failure f = check(vk_.vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit")) return f;
  submitted_ = number;
  return {};
}

Failure Gpu::wait(uint64_t submission) {
  if (lost_) return lost_;
  if (submission <= ended_) return {};
  VkSemaphoreWaitInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1, info.pSemaphores = &timeline_, info.pValues = &submission;
  if (Failure f = check(vk_.vkWaitSemaphores(device_, &info, UINT64_MAX), "vkWaitSemaphores")) return f;
  ended_ = submission;
  return {};
}

}  // namespace gimbal::vulkan
