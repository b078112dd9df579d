// The results of a kernel beside those of the reference, and whether it wrote only where it may.
#pragma once
#include <string>
#include <vector>

#include "conformance/conformance.h"
#include "conformance/known_cases.h"
#include "device/abi.h"
#include "ops/cases.h"

namespace gimbal {

struct Computed {
  std::vector<unsigned char> before, output;  // the whole slot: guard, values, guard
  std::string damage;                         // writes outside the output; empty if none
  std::vector<unsigned char> state;           // of ops that have one
};

// `written`: the input that the op writes to, if any. Adds the case to the report.
void judge(const Case&, const CaseInput* written, const Expected&, const gimbal_kernel_info& row,
           const Computed&, KernelReport& report);

}  // namespace gimbal
