// A Vulkan layer that makes the driver below it look like a discrete GPU of another vendor: vendor, name and
// type. What a program does with such a device can so be tried on lavapipe. The interface is that of the
// Vulkan loader's document "LoaderLayerInterface", version 2.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstring>
#include <map>
#include <mutex>

namespace {

// The functions below this layer, asked for while the instance is made: later the loader gives those on top.
struct Below {
  PFN_vkGetInstanceProcAddr address;
  PFN_vkGetPhysicalDeviceProperties properties;
  PFN_vkGetPhysicalDeviceProperties2 properties2;
};
std::mutex mutex;
std::map<void*, Below> below_of;  // by dispatch table, which an instance and its devices share

void* key(const void* dispatchable) { return *static_cast<void* const*>(dispatchable); }

Below below(const void* dispatchable) {
  const std::lock_guard lock(mutex);
  return below_of.at(key(dispatchable));
}

void disguise(VkPhysicalDeviceProperties& p) {
  p.vendorID = 0x1002, p.deviceID = 0x744c, p.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
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
  const std::lock_guard lock(mutex);
  below_of[key(*out)] = {
      address,
      reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(address(*out, "vkGetPhysicalDeviceProperties")),
      reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(address(*out, "vkGetPhysicalDeviceProperties2"))};
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
  return instance ? below(instance).address(instance, name) : nullptr;
}

}  // namespace

extern "C" VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* v) {
  if (v->loaderLayerInterfaceVersion < 2) return VK_ERROR_INITIALIZATION_FAILED;
  v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = address;
  v->pfnGetDeviceProcAddr = nullptr;
  v->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
