// Chooses the kernel of every op, and keeps the reasons: what `gimbal explain` prints is what runs.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

struct Quarantined {  // a kernel that gave wrong numbers on this machine
  std::string kernel, why;
};

struct KernelPreference {
  std::vector<std::string> patterns;  // shell patterns over kernel names, most wanted first: "cpu.avx2.*"
  bool allow_fast = false;            // rows whose order of additions is their own may be chosen
  bool strict = false;                // an op that no pattern's kernel computes is an error
  std::vector<Quarantined> quarantined = {};  // never chosen, whatever the patterns say
};

struct Rejected {
  size_t kernel;  // row in the device's table
  std::string why;
};

struct Choice {  // of one op
  size_t kernel;
  std::string why;
  std::vector<Rejected> rejected;  // rows for the same op that were not taken, best rank first
};

// Writes gimbal_op::kernel of every op and answers one Choice per op. Errors: Unsupported, naming the op and
// why each row for it does not fit; NoBackend under strict when no preferred kernel computes an op.
Result<std::vector<Choice>> assign_kernels(Program&, const Device&, const KernelPreference&);

}  // namespace gimbal
