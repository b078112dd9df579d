// The predicate shared by selection, reports, dispatch and tests: does this kernel support this op here?
#pragma once
#include <optional>
#include <string>

#include "device/abi.h"

namespace gimbal {

// Why a kernel does not support an op. Cheap to compute; formatted as text only on demand.
struct Misfit {
  enum What : uint8_t {
    None,
    AnotherOp,
    Features,
    TooManyValues,  // more inputs or outputs than any kernel supports
    NoInput,        // the kernel has no input of this index
    Input,          // unsupported format
    InputLayout,
    NoOutput,
    Output,
    OutputLayout,
    Param,         // unsupported parameter: 0 to 15 are i, from 16 on f
    Limit,         // the limit of this index is violated
    UnknownLimit,  // the limit is unknown to this version
    Fast,
  } what = None;
  uint8_t which = 0;  // index of the input, output, parameter or limit
  explicit operator bool() const { return what != None; }
};

// None if `row` computes `op` on a device with these features. The row must claim every property of the op:
// each input, each parameter that is not 0, each size.
Misfit misfit(const gimbal_kernel_info& row, const gimbal_op& op, const gimbal_value* values,
              const gimbal_device_info& device, bool allow_fast);
// As text: "does not take q4_0".
std::string words(const Misfit&, const gimbal_kernel_info& row, const gimbal_op& op,
                  const gimbal_value* values, const gimbal_device_info& device);

// Both combined: nullopt if `row` computes `op`.
std::optional<std::string> why_not(const gimbal_kernel_info& row, const gimbal_op& op,
                                   const gimbal_value* values, const gimbal_device_info& device,
                                   bool allow_fast);

}  // namespace gimbal
