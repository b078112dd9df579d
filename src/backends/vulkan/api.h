// The way into Vulkan: the library, an instance, its devices, and why one cannot be used.
#pragma once
#define VK_NO_PROTOTYPES 1
#include <volk.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/vulkan/runtime.h"
#include "gpu/runtime.h"

namespace gimbal::vulkan {

using simt::Failure;

// Success is no Failure. `call`: "vkCreateBuffer".
Failure failure(VkResult, const char* call);

// The functions that are asked for before there is a device.
struct InstanceFunctions {
  PFN_vkDestroyInstance destroy_instance;
  PFN_vkEnumeratePhysicalDevices enumerate_devices;
  PFN_vkEnumerateDeviceExtensionProperties enumerate_extensions;
  PFN_vkGetPhysicalDeviceProperties2 properties;
  PFN_vkGetPhysicalDeviceMemoryProperties2 memory;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties queue_families;
  PFN_vkGetPhysicalDeviceFeatures2 features;
  PFN_vkCreateDevice create_device;
  PFN_vkCreateDebugUtilsMessengerEXT create_messenger;    // nullptr without the extension
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;  // likewise
};

// A device as the driver describes it.
struct Candidate {
  VkPhysicalDevice handle;
  std::string name, driver;
  VkPhysicalDeviceLimits limits;
  VkPhysicalDeviceType type;
  uint64_t largest_allocation;
  uint32_t queue_family;
  // Lanes of a sub-group that exchange values, where groups can be made of full ones
  // (VK_EXT_subgroup_size_control); else 1.
  uint32_t subgroup_lanes;
  bool subgroup_may_be_required;  // a pipeline can ask for that size
  bool memory_budget;             // VK_EXT_memory_budget is there
  std::string pci_id;             // "0000:65:00.0"; empty without VK_EXT_pci_bus_info
  std::string refusal;            // why it cannot be used; empty when it can
  bool too_old;                   // the driver, and that is why
};

class Instance {
 public:
  static Failure open(const Options&, std::unique_ptr<Instance>* out);
  // Leaves this one, made with no options, to the next open() without any: an instance loads every driver
  // there is, and who counts devices mostly opens one next. Never destroyed at exit, when drivers may be
  // gone.
  static void keep(std::unique_ptr<Instance>);
  ~Instance();

  const InstanceFunctions& functions() const { return functions_; }
  // All devices, those that can be used and the others; Unsupported when there is none at all.
  Failure devices(std::vector<Candidate>* out) const;
  // What the validation layer said first since the last question; empty when nothing.
  std::string complaint();

 private:
  Instance() = default;
  Failure load(const Options&);
  Failure listen();

  VkInstance handle_ = nullptr;
  InstanceFunctions functions_ = {};
  VkDebugUtilsMessengerEXT messenger_ = nullptr;
  std::mutex mutex_;  // the layer speaks on any thread
  std::string complaint_;
};

}  // namespace gimbal::vulkan
