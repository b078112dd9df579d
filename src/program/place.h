// Chooses the kernel of every op and records the reasons, so that `gimbal explain` reports the actual choice.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

struct Quarantined {  // a kernel that computed wrong results on this machine
  std::string kernel, why;
  std::string device = {};  // "cuda:1"; empty: all devices
};

// Measured times of alternative kernels for one product: a weight format, a number of columns and of rows
// (engine/measured.h). The number of outputs hardly matters.
struct MeasuredProduct {
  std::string device;  // "cpu:0"
  DType format;        // of the weights
  int64_t columns;
  int rows;  // 1, or a representative of a range: measured_as()
  struct Time {
    std::string kernel;
    double seconds;
  };
  std::vector<Time> times;

  const Time* of(std::string_view kernel) const;  // nullptr: not measured
  bool same_product(const MeasuredProduct&) const;
};
// A kernel replaces the one of highest rank only if it was at least this much faster.
inline constexpr double kMeasuredMargin = 1.05;

struct KernelPreference {
  std::vector<std::string> patterns;  // shell patterns over kernel names, most preferred first: "cpu.avx2.*"
  bool allow_fast = false;            // allow kernels that do not sum in the reference order
  bool strict = false;                // an op without a preferred kernel is an error
  std::vector<Quarantined> quarantined = {};   // never chosen, regardless of the patterns
  std::vector<MeasuredProduct> measured = {};  // decide between fitting kernels if no pattern does
};

// The kernel chosen for one op. Without text, because a model has thousands of ops, a device hundreds of
// kernels, and explanations are rare.
struct Choice {
  enum Why : uint8_t { OnlyOne, HighestRank, Preferred, Measured };
  uint16_t kernel;   // row in the device's table
  uint16_t pattern;  // if Preferred: index of the pattern; if Measured: of the measurement
  Why why;
  bool without_preferred;        // patterns were given, but no kernel that they match fits
  uint8_t taken = 0, other = 0;  // if Measured: indices into its times of this kernel and the runner-up
};

inline constexpr const char* kNoKernel = "no-kernel";  // Error::reason

// Sets gimbal_op::kernel of every op and returns one Choice per op. Errors: Unsupported, with the op and why
// its best kernel does not fit; NoBackend under `strict` if no preferred kernel computes an op.
Result<std::vector<Choice>> assign_kernels(Program&, const Device&, const KernelPreference&);

// The kernels between which a measurement would decide for this op: exact ones of the highest ranks, and fast
// ones if allowed. Empty if there is no decision: the op is no large product, only one kernel fits, or a
// pattern matches one of them.
std::vector<size_t> rivals(const Program&, const gimbal_op&, const Device&, const KernelPreference&);
// The op as a product to measure, without times; nullopt if not worth measuring. Similar numbers of rows are
// merged: up to 8 are measured with 4, up to 32 with 16, more with 64.
std::optional<MeasuredProduct> measured_as(const Program&, const gimbal_op&, const Device&);

// ---- for reports, with the same preference as the choice
// "the highest rank that fits"
std::string why_chosen(const Choice&, const KernelPreference&);

struct Rejected {
  size_t kernel;  // row in the device's table
  std::string why;
};
// The rejected kernels for an op, best rank first. The op's kernel must be assigned.
std::vector<Rejected> rejections(const Program&, const gimbal_op&, const Device&, const KernelPreference&);

}  // namespace gimbal
