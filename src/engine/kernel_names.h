// Parses the names and needs in a device's kernel table: backend.variant.op.format.
#pragma once
#include <string>
#include <vector>

#include "device/device.h"

namespace gimbal {

std::string variant_of(const std::string& kernel);  // "avx2" of "cpu.avx2.mat_mul.q4_0"
// "AVX2, FMA": the features that a kernel needs, all of them, or only those that this device lacks; may be
// empty.
std::string needs_of(const gimbal_kernel_info&, const gimbal_device_info&);
std::string missing_of(const gimbal_kernel_info&, const gimbal_device_info&);

struct Variant {
  std::string name;
  std::string missing;  // empty: this device can use it
};
std::vector<Variant> variants_of(const Device&);  // in the order of the table

}  // namespace gimbal
