// The one predicate behind selection, reports, dispatch and tests: does a kernel row compute this op here?
#pragma once
#include <optional>
#include <string>

#include "device/abi.h"

namespace gimbal {

// Why a row does not compute an op: cheap to find, and put into words only for a reader.
struct Misfit {
  enum What : uint8_t {
    None,
    AnotherOp,
    Features,
    TooManyValues,  // more inputs or outputs than any kernel has
    NoInput,        // it has no input of this number
    Input,          // not of this format
    InputLayout,
    NoOutput,
    Output,
    OutputLayout,
    Param,         // does not know this parameter: 0 to 15 are i, from 16 on f
    Limit,         // of this number in its list
    UnknownLimit,  // one that this version does not know
    Fast,
  } what = None;
  uint8_t which = 0;  // of the inputs, outputs, parameters or limits
  explicit operator bool() const { return what != None; }
};

// None when `row` computes `op` on a device with these features. Everything that the op is must be claimed by
// the row: every input that it has, every parameter that is not 0, every size.
Misfit misfit(const gimbal_kernel_info& row, const gimbal_op& op, const gimbal_value* values,
              const gimbal_device_info& device, bool allow_fast);
// The same for a reader: "does not take q4_0".
std::string words(const Misfit&, const gimbal_kernel_info& row, const gimbal_op& op,
                  const gimbal_value* values, const gimbal_device_info& device);

// Both in one: nullopt when `row` computes `op`.
std::optional<std::string> why_not(const gimbal_kernel_info& row, const gimbal_op& op,
                                   const gimbal_value* values, const gimbal_device_info& device,
                                   bool allow_fast);

}  // namespace gimbal
