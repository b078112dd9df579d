// Vulkan as a Runtime: any device whose driver speaks Vulkan 1.2 and has a queue that computes. libvulkan is
// opened when it is first asked for; nothing is linked.
#pragma once
#include <memory>
#include <string>

#include "gpu/runtime.h"

struct VolkDeviceTable;

namespace gimbal::vulkan {

struct Options {
  bool staging =
      false;  // copies through a buffer of the host also where the device's memory could be written directly
  bool split_fma = false;     // as on a device whose fma() is two operations
  bool no_subgroups = false;  // as on a device whose sub-groups exchange no values
  bool validation = false;    // Khronos' validation layer: what it complains about becomes the Failure
                              // (Invalid) of the next call
  uint64_t max_binding =
      0;                // Facts::max_binding_bytes, where it is below the device's own; 0: the device's own
  std::string library;  // of the loader; empty: "libvulkan.so.1"
  void (*intercept)(VolkDeviceTable&) =
      nullptr;  // for tests: puts functions of its own in place of the driver's
};

// Devices that open() can open; 0 where there is no library, no driver, or none that can do what is needed:
// open(0, ...) says why.
int device_count();
// Unsupported, with the reason, when there is no such device.
simt::Failure open(int index, const Options&, std::unique_ptr<simt::Runtime>* out);

}  // namespace gimbal::vulkan
