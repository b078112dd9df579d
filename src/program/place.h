// Chooses the kernel of every op, and keeps the reasons: what `gimbal explain` prints is what runs.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

struct Quarantined {  // a kernel that gave wrong numbers on this machine
  std::string kernel, why;
  std::string device = {};  // "cuda:1"; empty: on every one
};

// What rows of a device's table took, one after the other, for products of one format, so many columns and so
// many rows (engine/measured.h). How many outputs there are changes little.
struct MeasuredProduct {
  std::string device;  // "cpu:0"
  DType format;        // of the weights
  int64_t columns;
  int rows;  // 1, or for many numbers of rows: measured_as()
  struct Time {
    std::string kernel;
    double seconds;
  };
  std::vector<Time> times;

  const Time* of(std::string_view kernel) const;  // nullptr: not measured
  bool same_product(const MeasuredProduct&) const;
};
// Another row takes the place of the one with the highest rank where it was faster by this much at least.
inline constexpr double kMeasuredMargin = 1.05;

struct KernelPreference {
  std::vector<std::string> patterns;  // shell patterns over kernel names, most wanted first: "cpu.avx2.*"
  bool allow_fast = false;            // rows whose order of additions is their own may be chosen
  bool strict = false;                // an op that no pattern's kernel computes is an error
  std::vector<Quarantined> quarantined = {};   // never chosen, whatever the patterns say
  std::vector<MeasuredProduct> measured = {};  // decide where no pattern does, between rows that fit
};

// The kernel of one op. No words: a model has thousands of ops and a device hundreds of kernels, and few
// readers.
struct Choice {
  enum Why : uint8_t { OnlyOne, HighestRank, Preferred, Measured };
  uint16_t kernel;   // row in the device's table
  uint16_t pattern;  // when it is preferred: which of the patterns; when measured: which measurement
  Why why;
  bool without_preferred;        // patterns were given, and no kernel that one of them names fits
  uint8_t taken = 0, other = 0;  // when measured: of MeasuredProduct::times, this kernel and the next best
};

inline constexpr const char* kNoKernel = "no-kernel";  // Error::reason

// Writes gimbal_op::kernel of every op and answers one Choice per op. Errors: Unsupported, naming the op and
// why the best row for it does not fit; NoBackend under strict when no preferred kernel computes an op.
Result<std::vector<Choice>> assign_kernels(Program&, const Device&, const KernelPreference&);

// The rows of the device's table among which a measurement would decide for this op: the exact ones of the
// highest ranks, and fast ones where they are allowed. Empty where there is nothing to decide: an op that is
// no large product, a single row, a pattern that names one of them.
std::vector<size_t> rivals(const Program&, const gimbal_op&, const Device&, const KernelPreference&);
// The op as something to measure, without times; nullopt for one that is not worth it. Numbers of rows that
// differ little are one: all up to 8 are measured with 4, all up to 32 with 16, all above with 64.
std::optional<MeasuredProduct> measured_as(const Program&, const gimbal_op&, const Device&);

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
