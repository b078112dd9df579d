// Whether a device keeps KV caches in the layout of packing/layout.h, so that pages written by one device
// serve all others. The contract leaves the layout to the device, so the device itself is tried: it writes
// known rows, and the bytes are compared.
#pragma once
#include "device/device.h"

namespace gimbal {

// Of one layer's keys or values. Errors: Unsupported if the bytes differ, or no kernel writes such a cache;
// the device's.
Status check_cache_layout(const Device&, DType, bool is_key, int head_dim, int heads);

}  // namespace gimbal
