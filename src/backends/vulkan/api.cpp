#define VOLK_IMPLEMENTATION 1
#include "backends/vulkan/api.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/vendor_libraries.h"
#include "device/reason.h"

namespace gimbal::vulkan {
namespace {

constexpr VendorLibraryFiles kLoaders = driver_files("vulkan");
constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";
constexpr uint32_t kVersion = VK_API_VERSION_1_2;

// All kernels share one descriptor layout: their buffers, and the step data.
constexpr uint32_t kStorageBuffers = gpu::kMaxBindings + 1;

// Without a reason: the options are the cause.
Failure unsupported(std::string text, const char* reason = "") {
  return {Failure::Unsupported, std::move(text), reason};
}

std::string version_text(uint32_t v) {
  return format("{}.{}", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v));
}

const char* name_of(VkResult r) {
  switch (r) {
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_INCOMPLETE: return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    case VK_ERROR_FRAGMENTATION: return "VK_ERROR_FRAGMENTATION";
    case VK_ERROR_UNKNOWN: return "VK_ERROR_UNKNOWN";
    case VK_ERROR_INVALID_SHADER_NV: return "VK_ERROR_INVALID_SHADER_NV";
    default: return nullptr;
  }
}

// The library stays open, because some drivers fail when unloaded. Several threads may call this at once.
Failure open_library(const std::string& name) {
  static std::mutex mutex;
  static bool loaded = false;
  const std::lock_guard lock(mutex);
  if (loaded && name.empty()) return {};
  const char* file = nullptr;
  void* library = nullptr;
  std::string why;  // of the first
  const auto open = [&](const char* candidate) {
    file = candidate;
    library = dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
    if (!library && why.empty()) why = dlerror();
  };
  if (!name.empty()) open(name.c_str());
  else
    for (size_t i = 0; kLoaders[i] && !library; i++) open(kLoaders[i]);
  if (!library)
    return unsupported(
        format(
            "the Vulkan library cannot be opened: {}\ninstall the graphics driver, or the package libvulkan1",
            why),
        reason::kLibraryMissing);
  auto entry = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (!entry) {
    dlclose(library);
    return unsupported(format("{} is not a Vulkan library: it lacks vkGetInstanceProcAddr", file),
                       reason::kLibraryMissing);
  }
  loaded = false;
  volkInitializeCustom(entry);
  // volkLoadDeviceTable() starts from this one, which the loader itself offers.
  vkGetDeviceProcAddr = reinterpret_cast<PFN_vkGetDeviceProcAddr>(dlsym(library, "vkGetDeviceProcAddr"));
  if (!vkCreateInstance || !vkGetDeviceProcAddr || volkGetInstanceVersion() < kVersion) {
    const uint32_t version = volkGetInstanceVersion();
    dlclose(library);
    return unsupported(format("{} speaks Vulkan {}; {} is needed\ninstall a newer libvulkan1", file,
                              version_text(version), version_text(kVersion)),
                       reason::kDriverTooOld);
  }
  loaded = true;
  return {};
}

bool has_layer(const char* wanted) {
  uint32_t n = 0;
  if (vkEnumerateInstanceLayerProperties(&n, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(n);
  if (vkEnumerateInstanceLayerProperties(&n, layers.data()) != VK_SUCCESS) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!strcmp(layers[i].layerName, wanted)) return true;
  return false;
}

std::string refusal_of(const Candidate& c, uint32_t version, bool timeline) {
  if (version < kVersion)
    return format("its driver speaks Vulkan {}; {} is needed", version_text(version), version_text(kVersion));
  if (c.queue_family == UINT32_MAX) return "it has no compute queue";
  if (!timeline) return "it has no timeline semaphores";
  if (c.limits.maxPerStageDescriptorStorageBuffers < kStorageBuffers ||
      c.limits.maxDescriptorSetStorageBuffers < kStorageBuffers)
    return format(
        "a kernel can have {} buffers; {} are needed",
        std::min(c.limits.maxPerStageDescriptorStorageBuffers, c.limits.maxDescriptorSetStorageBuffers),
        kStorageBuffers);
  if (c.limits.minStorageBufferOffsetAlignment > 256)
    return format("it binds buffers at multiples of {} bytes; at most 256 are supported",
                  c.limits.minStorageBufferOffsetAlignment);
  return "";
}

// Groups that exchange values have at most 64 lanes, so wider sub-groups are limited to this size.
constexpr uint32_t kWidestSubgroup = 64;

// Of a device that has VK_EXT_subgroup_size_control.
void read_subgroups(const InstanceFunctions& functions, VkPhysicalDevice handle, Candidate* c) {
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT control = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &control};
  functions.features(handle, &features);
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
  VkPhysicalDeviceSubgroupProperties own = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, &sizes};
  VkPhysicalDeviceProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &own};
  functions.properties(handle, &all);
  const bool can_ask = sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
  const uint32_t lanes = std::min(own.subgroupSize, kWidestSubgroup);
  if (!control.subgroupSizeControl || !control.computeFullSubgroups ||
      !(own.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) ||
      !(own.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) || lanes < 4 ||
      (can_ask ? lanes < sizes.minSubgroupSize || lanes > sizes.maxSubgroupSize
               : sizes.minSubgroupSize != lanes || sizes.maxSubgroupSize != lanes))
    return;
  c->subgroup_lanes = lanes;
  c->subgroup_may_be_required = can_ask;
}

}  // namespace

Failure failure(VkResult r, const char* call) {
  if (r == VK_SUCCESS) return {};
  const char* name = name_of(r);
  Failure f{Failure::Invalid, format("{} failed: {}", call, name ? name : format("VkResult {}", int(r)))};
  if (r == VK_ERROR_DEVICE_LOST) {
    f.code = Failure::DeviceLost;
    f.text += ": the device stopped answering";
  } else if (r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
             r == VK_ERROR_OUT_OF_POOL_MEMORY || r == VK_ERROR_FRAGMENTATION ||
             r == VK_ERROR_TOO_MANY_OBJECTS) {
    f.code = Failure::OutOfMemory;
  } else if (r == VK_ERROR_INITIALIZATION_FAILED || r == VK_ERROR_INCOMPATIBLE_DRIVER ||
             r == VK_ERROR_LAYER_NOT_PRESENT || r == VK_ERROR_EXTENSION_NOT_PRESENT ||
             r == VK_ERROR_FEATURE_NOT_PRESENT) {
    f.code = Failure::Unsupported;
  }
  return f;
}

namespace {
std::atomic<Instance*> kept = nullptr;
}

Failure Instance::open(const Options& options, std::unique_ptr<Instance>* out) {
  if (options.library.empty() && !options.validation) {
    out->reset(kept.exchange(nullptr));
    if (*out) return {};
  }
  if (Failure f = open_library(options.library)) return f;
  std::unique_ptr<Instance> instance(new Instance);
  if (Failure f = instance->load(options)) return f;
  *out = std::move(instance);
  return {};
}

void Instance::keep(std::unique_ptr<Instance> instance) { delete kept.exchange(instance.release()); }

Failure Instance::load(const Options& options) {
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "gimbal";
  application.apiVersion = kVersion;
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  const char *layer = kValidationLayer,
             *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  // Also whether launches that touch the same words have a barrier between them.
  const VkValidationFeatureEnableEXT barriers = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT more = {VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  more.enabledValidationFeatureCount = 1, more.pEnabledValidationFeatures = &barriers;
  if (options.validation) {
    if (!has_layer(layer))
      return unsupported(format("{} does not exist\ninstall the package vulkan-validationlayers", layer));
    info.enabledLayerCount = 1, info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 2, info.ppEnabledExtensionNames = extensions;
    info.pNext = &more;
  }
  const VkResult made = vkCreateInstance(&info, nullptr, &handle_);
  if (made == VK_ERROR_INCOMPATIBLE_DRIVER)
    return unsupported(
        "the Vulkan library found no driver that it can use\ninstall the one of your graphics card (Debian: "
        "mesa-vulkan-drivers, nvidia-vulkan-icd)",
        reason::kNoDevice);
  if (Failure f = failure(made, "vkCreateInstance")) return f;

  bool complete = true;
  auto get = [&](auto& function, const char* name, bool needed = true) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(vkGetInstanceProcAddr(handle_, name));
    complete &= function || !needed;
  };
  get(functions_.destroy_instance, "vkDestroyInstance");
  get(functions_.enumerate_devices, "vkEnumeratePhysicalDevices");
  get(functions_.enumerate_extensions, "vkEnumerateDeviceExtensionProperties");
  get(functions_.properties, "vkGetPhysicalDeviceProperties2");
  get(functions_.memory, "vkGetPhysicalDeviceMemoryProperties2");
  get(functions_.queue_families, "vkGetPhysicalDeviceQueueFamilyProperties");
  get(functions_.features, "vkGetPhysicalDeviceFeatures2");
  get(functions_.create_device, "vkCreateDevice");
  get(functions_.create_messenger, "vkCreateDebugUtilsMessengerEXT", options.validation);
  get(functions_.destroy_messenger, "vkDestroyDebugUtilsMessengerEXT", options.validation);
  if (!complete)
    return unsupported("the Vulkan library lacks functions of Vulkan 1.2\ninstall a newer libvulkan1",
                       reason::kDriverTooOld);
  return options.validation ? listen() : Failure();
}

Failure Instance::listen() {
  VkDebugUtilsMessengerCreateInfoEXT info = {VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pUserData = this;
  info.pfnUserCallback = [](VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                            const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) -> VkBool32 {
    auto& instance = *static_cast<Instance*>(self);
    const std::lock_guard lock(instance.mutex_);
    if (instance.complaint_.empty())
      instance.complaint_ = data->pMessage ? data->pMessage : "an empty message";
    return VK_FALSE;
  };
  return failure(functions_.create_messenger(handle_, &info, nullptr, &messenger_),
                 "vkCreateDebugUtilsMessengerEXT");
}

Instance::~Instance() {
  if (messenger_) functions_.destroy_messenger(handle_, messenger_, nullptr);
  if (handle_ && functions_.destroy_instance) functions_.destroy_instance(handle_, nullptr);
}

std::string Instance::complaint() {
  const std::lock_guard lock(mutex_);
  return std::exchange(complaint_, {});
}

Failure Instance::devices(std::vector<Candidate>* out) const {
  uint32_t n = 0;
  if (Failure f = failure(functions_.enumerate_devices(handle_, &n, nullptr), "vkEnumeratePhysicalDevices"))
    return f;
  std::vector<VkPhysicalDevice> handles(n);
  if (Failure f =
          failure(functions_.enumerate_devices(handle_, &n, handles.data()), "vkEnumeratePhysicalDevices"))
    return f;
  if (!n)
    return unsupported(
        "Vulkan's drivers found no device\n`vulkaninfo` (package vulkan-tools) lists their devices",
        reason::kNoDevice);
  for (VkPhysicalDevice handle : handles) {
    VkPhysicalDeviceDriverProperties driver = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties sizes = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &driver};
    VkPhysicalDeviceProperties2 all = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes};
    functions_.properties(handle, &all);
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &timeline};
    functions_.features(handle, &features);

    Candidate c = {};
    c.subgroup_lanes = 1;
    c.handle = handle;
    c.name = all.properties.deviceName;
    c.driver = format("{} {}", driver.driverName, driver.driverInfo);
    c.limits = all.properties.limits, c.type = all.properties.deviceType;
    c.largest_allocation = sizes.maxMemoryAllocationSize;
    uint32_t families = 0;
    functions_.queue_families(handle, &families, nullptr);
    std::vector<VkQueueFamilyProperties> queues(families);
    functions_.queue_families(handle, &families, queues.data());
    c.queue_family = UINT32_MAX;
    for (uint32_t i = families; i-- > 0;)
      if (queues[i].queueFlags & VK_QUEUE_COMPUTE_BIT) c.queue_family = i;

    bool pci = false, size_control = false;
    uint32_t extensions = 0;
    functions_.enumerate_extensions(handle, nullptr, &extensions, nullptr);
    std::vector<VkExtensionProperties> known(extensions);
    functions_.enumerate_extensions(handle, nullptr, &extensions, known.data());
    for (const VkExtensionProperties& e : known) {
      c.memory_budget |= !strcmp(e.extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
      size_control |= !strcmp(e.extensionName, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
      pci |= !strcmp(e.extensionName, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    }
    if (pci) {
      VkPhysicalDevicePCIBusInfoPropertiesEXT bus = {
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
      VkPhysicalDeviceProperties2 more = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &bus};
      functions_.properties(handle, &more);
      c.pci_id =
          format("{:04x}:{:02x}:{:02x}.{:x}", bus.pciDomain, bus.pciBus, bus.pciDevice, bus.pciFunction);
    }
    if (size_control) read_subgroups(functions_, handle, &c);
    c.version = all.properties.apiVersion;
    c.too_old = c.version < kVersion;
    c.refusal = refusal_of(c, c.version, timeline.timelineSemaphore);
    out->push_back(std::move(c));
  }
  return {};
}

}  // namespace gimbal::vulkan
