// Access to Vulkan: the library, an instance, its devices, and the reasons why a device is unusable.
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

using gpu::Failure;

// Success is no Failure. `call`: "vkCreateBuffer".
Failure failure(VkResult, const char* call);

// Functions that need no device.
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

// A device's properties as reported by the driver.
struct Candidate {
  VkPhysicalDevice handle;
  std::string name, driver;
  uint32_t version;  // of Vulkan: VK_API_VERSION_MAJOR() and so on
  VkPhysicalDeviceLimits limits;
  VkPhysicalDeviceType type;
  uint64_t largest_allocation;
  uint32_t queue_family;
  // Lanes per sub-group that exchange values, if groups can consist of full sub-groups
  // (VK_EXT_subgroup_size_control); else 1.
  uint32_t subgroup_lanes;
  bool subgroup_may_be_required;  // a pipeline can require that size
  bool memory_budget;             // VK_EXT_memory_budget is supported
  std::string pci_id;             // "0000:65:00.0"; empty without VK_EXT_pci_bus_info
  std::string refusal;            // why it cannot be used; empty if it can
  bool too_old;                   // refused because the driver is too old
};

class Instance {
 public:
  static Failure open(const Options&, std::unique_ptr<Instance>* out);
  // Keeps this instance, made without options, for the next open() without options: creating an instance
  // loads every driver, and counting devices is usually followed by opening one. Never destroyed at exit,
  // when drivers may already be unloaded.
  static void keep(std::unique_ptr<Instance>);
  ~Instance();

  const InstanceFunctions& functions() const { return functions_; }
  // All devices, usable or not; Unsupported if there are none.
  Failure devices(std::vector<Candidate>* out) const;
  // The first message of the validation layer since the last call; empty if none.
  std::string complaint();

 private:
  Instance() = default;
  Failure load(const Options&);
  Failure listen();

  VkInstance handle_ = nullptr;
  InstanceFunctions functions_ = {};
  VkDebugUtilsMessengerEXT messenger_ = nullptr;
  std::mutex mutex_;  // the layer reports on any thread
  std::string complaint_;
};

}  // namespace gimbal::vulkan
