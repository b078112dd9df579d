#include "program/state.h"

#include "device/device.h"

namespace gimbal {

uint64_t state_bytes(const Device& device, const Shape& s, StateLayout layout) {
  if (layout == StateLayout::Dense) return uint64_t(s.bytes());
  return device.cache_bytes(s.type, layout == StateLayout::Keys, s.dim[0], s.dim[1], s.dim[2], s.dim[3]);
}

}  // namespace gimbal
