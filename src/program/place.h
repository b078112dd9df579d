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
  std::string device = {};  // "cuda:1"; empty: on every one
};

struct KernelPreference {
  std::vector<std::string> patterns;  // shell patterns over kernel names, most wanted first: "cpu.avx2.*"
  bool allow_fast = false;            // rows whose order of additions is their own may be chosen
  bool strict = false;                // an op that no pattern's kernel computes is an error
  std::vector<Quarantined> quarantined = {};  // never chosen, whatever the patterns say
};

// The kernel of one op. No words: a model has thousands of ops and a device hundreds of kernels, and few
// readers.
struct Choice {
  enum Why : uint8_t { OnlyOne, HighestRank, Preferred };
  uint16_t kernel;   // row in the device's table
  uint16_t pattern;  // when it is preferred: which of the patterns
  Why why;
  bool without_preferred;  // patterns were given, and no kernel that one of them names fits
};

inline constexpr const char* kNoKernel = "no-kernel";  // Error::reason

// Writes gimbal_op::kernel of every op and answers one Choice per op. Errors: Unsupported, naming the op and
// why the best row for it does not fit; NoBackend under strict when no preferred kernel computes an op.
Result<std::vector<Choice>> assign_kernels(Program&, const Device&, const KernelPreference&);

// ---- for readers; the preference is the one that the choice was made with
// "the highest rank that fits"
std::string why_chosen(const Choice&, const KernelPreference&);

struct Rejected {
  size_t kernel;  // row in the device's table
  std::string why;
};
// The rows for an op that were not taken, best rank first. The op's kernel has been assigned.
std::vector<Rejected> rejections(const Program&, const gimbal_op&, const Device&, const KernelPreference&);

}  // namespace gimbal
