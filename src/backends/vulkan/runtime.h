// Vulkan as a Runtime: any device with a Vulkan 1.2 driver and a compute queue. libvulkan is loaded on first
// use; nothing is linked.
#pragma once
#include <memory>
#include <string>

#include "gpu/runtime.h"

struct VolkDeviceTable;

namespace gimbal::vulkan {

struct Options {
  // Copy through a staging buffer even if device memory is accessible to the host.
  bool staging = false;
  bool split_fma = false;     // behave as a device whose fma() rounds twice
  bool no_subgroups = false;  // behave as a device without sub-group exchanges
  bool validation = false;    // use Khronos' validation layer: its message becomes the Failure
                              // (Invalid) of the next call
  // A lower limit for Facts::max_binding_bytes; 0: the device's own.
  uint64_t max_binding = 0;
  std::string library;  // of the loader; empty: the usual names
  std::string shaderc;  // the library that compiles kernel texts; empty: its usual names
  // For tests: replaces functions of the driver.
  void (*intercept)(VolkDeviceTable&) = nullptr;
};

// Number of usable devices; 0 without a library, driver or suitable
// device: open(0, ...) returns the reason.
int device_count();
// Unsupported, with the reason, if there is no such device.
gpu::Failure open(int index, const Options&, std::unique_ptr<gpu::Runtime>* out);

}  // namespace gimbal::vulkan
