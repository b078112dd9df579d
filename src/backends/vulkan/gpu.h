// An open device: its functions, its queue, and how far the queue has come. Everything is submitted in one
// order to one queue; a timeline semaphore counts the submissions that have ended.
#pragma once
#include <memory>
#include <utility>

#include "backends/vulkan/api.h"

namespace gimbal::vulkan {

class Gpu {
 public:
  static Failure open(int index, const Options&, std::unique_ptr<Gpu>* out);
  ~Gpu();

  const Candidate& facts() const { return facts_; }
  const VolkDeviceTable& vk() const { return vk_; }
  VkDevice device() const { return device_; }
  VkPhysicalDeviceMemoryProperties2 memory(void* more = nullptr) const;

  // Success is no Failure; a device that was lost once stays lost.
  Failure check(VkResult, const char* call);
  const Failure& lost() const { return lost_; }
  std::string complaint() { return instance_->complaint(); }

  Failure make_commands(VkCommandBuffer*);
  void free_commands(VkCommandBuffer);
  Failure begin(VkCommandBuffer, VkCommandBufferUsageFlags);
  Failure end(VkCommandBuffer);
  // What was written by shaders and copies, in all commands before, is there for those behind.
  void barrier(VkCommandBuffer, VkPipelineStageFlags from, VkPipelineStageFlags to,
               VkAccessFlags reads) const;

  Failure submit(VkCommandBuffer);
  uint64_t submitted() const { return submitted_; }  // the number of the last submission
  Failure wait(uint64_t submission);
  Failure wait_for_all() { return wait(submitted_); }

 private:
  Gpu() = default;
  Failure make_device(const Options&);

  std::unique_ptr<Instance> instance_;
  Candidate facts_ = {};
  VolkDeviceTable vk_ = {};
  VkDevice device_ = nullptr;
  VkQueue queue_ = nullptr;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  uint64_t submitted_ = 0, ended_ = 0;
  Failure lost_;
};

}  // namespace gimbal::vulkan
