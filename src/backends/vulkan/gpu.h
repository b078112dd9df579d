// An open device: its functions, its queue, and the queue's progress. All work is submitted in order to one
// queue; a timeline semaphore counts completed submissions.
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

  // VK_SUCCESS gives no Failure; a lost device stays lost.
  Failure check(VkResult, const char* call);
  const Failure& lost() const { return lost_; }
  std::string complaint() { return instance_->complaint(); }

  Failure make_commands(VkCommandBuffer*);
  void free_commands(VkCommandBuffer);
  Failure begin(VkCommandBuffer, VkCommandBufferUsageFlags);
  Failure end(VkCommandBuffer);
  // Makes shader and transfer writes of all earlier commands visible to later ones.
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
