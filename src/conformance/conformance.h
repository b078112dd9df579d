// Checks one kernel of a device against the double-precision reference. Shared by the tests, `gimbal verify`
// and the check before first use.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "device/device.h"

namespace gimbal {

struct KernelReport {
  int cases = 0;  // that the kernel supports and that ran
  int failed = 0;
  double worst = 0;  // largest error, as a fraction of the allowed error
  // A digest of all results, to compare devices: exact rows that ran the same cases have the same one. Any
  // NaN counts as the same.
  Hash bits;
  // The same with floats below 2^-78 as 0. The low parts of such products are subnormal, and some devices
  // flush these.
  Hash bits_without_tiny;
  std::string not_run;                // why no case ran: missing features, or no matching case
  bool unreachable = false;           // the device could run it, but no case matches: a gap in ops/cases
  std::vector<std::string> failures;  // one line each
};

// The formats of a kernel's cases and benchmarks: those of the operand that names it (OpCheck::named_by),
// such as its weights, its cache, or its quantized output.
std::vector<DType> formats_of(const gimbal_kernel_info& row);

// Errors: only those of the device (out of memory, device lost); wrong results are in the report.
Result<KernelReport> check_kernel(const Device& device, size_t kernel);

// The same for several kernels. Kernels with the same cases share the cases and the reference results: pass
// them in the order of by_cases(). Holds some 20 MB. Not thread-safe.
class KnownCases;
class KernelChecks {
 public:
  KernelChecks();
  ~KernelChecks();
  Result<KernelReport> check(const Device& device, size_t kernel);

 private:
  std::unique_ptr<KnownCases> known_;
};

// These kernels of the device, grouped by their cases.
std::vector<size_t> by_cases(const Device& device, std::vector<size_t> kernels);
std::vector<size_t> by_cases(const Device& device);  // all

}  // namespace gimbal
