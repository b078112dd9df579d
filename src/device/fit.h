// The one predicate behind selection, reports, dispatch and tests: does a kernel row compute this op here?
#pragma once
#include <optional>
#include <string>

#include "device/abi.h"

namespace gimbal {

// nullopt when `row` computes `op` on a device with these features; else the reason why not, for a reader.
std::optional<std::string> why_not(const gimbal_kernel_info& row, const gimbal_op& op,
                                   const gimbal_value* values, const gimbal_device_info& device,
                                   bool allow_fast);

}  // namespace gimbal
