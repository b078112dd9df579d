// A Vulkan layer that makes the driver below it look like a discrete GPU of another vendor: vendor, name and
// type. So tests run programs on such a device over lavapipe. With PRETENDED_BUDGET=BYTES the
// device also has VK_EXT_memory_budget, and that is what other programs leave of each heap. With
// PRETENDED_INTEGRATED it shares the host's memory; with PRETENDED_LOSS its queue fails. The interface is
// that of the Vulkan loader's document "LoaderLayerInterface", version 2.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

// The functions below this layer, asked for while the instance is made: later the loader gives those on top.
struct Below {
  VkInstance instance;
  PFN_vkGetInstanceProcAddr address;
  PFN_vkGetPhysicalDeviceProperties properties;
  PFN_vkGetPhysicalDeviceProperties2 properties2;
  PFN_vkGetPhysicalDeviceMemoryProperties2 memory;
  PFN_vkEnumerateDeviceExtensionProperties extensions;
};
std::mutex mutex;
std::map<void*, Below> below_of;  // by dispatch table, which an instance and its physical devices share
std::map<void*, PFN_vkGetDeviceProcAddr> below_device;

void* key(const void* dispatchable) { return *static_cast<void* const*>(dispatchable); }

Below below(const void* dispatchable) {
  const std::lock_guard lock(mutex);
  return below_of.at(key(dispatchable));
}

void disguise(VkPhysicalDeviceProperties& p) {
  p.vendorID = 0x1002, p.deviceID = 0x744c;
  p.deviceType = std::getenv("PRETENDED_INTEGRATED") ? VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
                                                     : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  std::strcpy(p.deviceName, "Pretended Radeon");
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice d, VkPhysicalDeviceProperties* out) {
  below(d).properties(d, out);
  disguise(*out);
}
VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice d, VkPhysicalDeviceProperties2* out) {
  below(d).properties2(d, out);
  disguise(out->properties);
}

const char* budget() { return std::getenv("PRETENDED_BUDGET"); }
bool is_budget(const char* extension) { return !std::strcmp(extension, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME); }

VKAPI_ATTR void VKAPI_CALL memory(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties2* out) {
  below(d).memory(d, out);
  for (auto* more = static_cast<VkBaseOutStructure*>(out->pNext); more && budget(); more = more->pNext)
    if (more->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      auto* told = reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(more);
      for (uint32_t i = 0; i < out->memoryProperties.memoryHeapCount; i++)
        told->heapBudget[i] = std::strtoull(budget(), nullptr, 10), told->heapUsage[i] = 0;
    }
}

VKAPI_ATTR VkResult VKAPI_CALL extensions(VkPhysicalDevice d, const char* layer, uint32_t* n,
                                          VkExtensionProperties* out) {
  if (layer || !budget()) return below(d).extensions(d, layer, n, out);
  uint32_t real = 0;
  if (const VkResult r = below(d).extensions(d, nullptr, &real, nullptr); r != VK_SUCCESS) return r;
  if (!out) return *n = real + 1, VK_SUCCESS;
  if (*n <= real) return below(d).extensions(d, nullptr, n, out);
  const VkResult r = below(d).extensions(d, nullptr, &real, out);
  std::strcpy(out[real].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  out[real].specVersion = 1, *n = real + 1;
  return r;
}

// Without the extension that the driver does not have.
VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice d, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocation, VkDevice* out) {
  auto* link = static_cast<VkLayerDeviceCreateInfo*>(const_cast<void*>(info->pNext));
  while (link &&
         (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO))
    link = static_cast<VkLayerDeviceCreateInfo*>(const_cast<void*>(link->pNext));
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  VkDeviceCreateInfo changed = *info;
  std::vector<const char*> names;
  for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
    if (!budget() || !is_budget(info->ppEnabledExtensionNames[i]))
      names.push_back(info->ppEnabledExtensionNames[i]);
  changed.enabledExtensionCount = uint32_t(names.size()), changed.ppEnabledExtensionNames = names.data();
  const VkResult made = reinterpret_cast<PFN_vkCreateDevice>(next(below(d).instance, "vkCreateDevice"))(
      d, &changed, allocation, out);
  if (made != VK_SUCCESS) return made;
  const std::lock_guard lock(mutex);
  below_device[key(*out)] = next_device;
  return made;
}

VKAPI_ATTR VkResult VKAPI_CALL lost(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  return VK_ERROR_DEVICE_LOST;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_address(VkDevice device, const char* name) {
  if (!std::strcmp(name, "vkGetDeviceProcAddr")) return reinterpret_cast<PFN_vkVoidFunction>(device_address);
  if (!std::strcmp(name, "vkQueueSubmit") && std::getenv("PRETENDED_LOSS"))
    return reinterpret_cast<PFN_vkVoidFunction>(lost);
  const std::lock_guard lock(mutex);
  return below_device.at(key(device))(device, name);
}

VKAPI_ATTR VkResult VKAPI_CALL create(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* memory,
                                      VkInstance* out) {
  auto* link = static_cast<VkLayerInstanceCreateInfo*>(const_cast<void*>(info->pNext));
  while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
                  link->function != VK_LAYER_LINK_INFO))
    link = static_cast<VkLayerInstanceCreateInfo*>(const_cast<void*>(link->pNext));
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr address = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const VkResult made =
      reinterpret_cast<PFN_vkCreateInstance>(address(VK_NULL_HANDLE, "vkCreateInstance"))(info, memory, out);
  if (made != VK_SUCCESS) return made;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address(*out, name));
  };
  Below b{};
  b.instance = *out, b.address = address;
  find(b.properties, "vkGetPhysicalDeviceProperties");
  find(b.properties2, "vkGetPhysicalDeviceProperties2");
  find(b.memory, "vkGetPhysicalDeviceMemoryProperties2");
  find(b.extensions, "vkEnumerateDeviceExtensionProperties");
  const std::lock_guard lock(mutex);
  below_of[key(*out)] = b;
  return made;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL address(VkInstance instance, const char* name) {
  const auto function = [](auto f) { return reinterpret_cast<PFN_vkVoidFunction>(f); };
  if (!std::strcmp(name, "vkGetInstanceProcAddr")) return function(address);
  if (!std::strcmp(name, "vkCreateInstance")) return function(create);
  if (!std::strcmp(name, "vkGetPhysicalDeviceProperties")) return function(properties);
  if (!std::strcmp(name, "vkGetPhysicalDeviceProperties2") ||
      !std::strcmp(name, "vkGetPhysicalDeviceProperties2KHR"))
    return function(properties2);
  if (!std::strcmp(name, "vkGetPhysicalDeviceMemoryProperties2") ||
      !std::strcmp(name, "vkGetPhysicalDeviceMemoryProperties2KHR"))
    return function(memory);
  if (!std::strcmp(name, "vkEnumerateDeviceExtensionProperties")) return function(extensions);
  if (!std::strcmp(name, "vkCreateDevice")) return function(create_device);
  return instance ? below(instance).address(instance, name) : nullptr;
}

}  // namespace

extern "C" VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* v) {
  if (v->loaderLayerInterfaceVersion < 2) return VK_ERROR_INITIALIZATION_FAILED;
  v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = address;
  v->pfnGetDeviceProcAddr = device_address;
  v->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
