// Runs one row of a device's kernel table, pinned, against the double-precision reference. The tests, `gimbal
// verify` and the check before first use all call this.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace gimbal {

struct KernelReport {
  int cases = 0;  // that the row computes, and that were run
  int failed = 0;
  double worst = 0;          // largest error, as a fraction of what the op's definition allows
  std::string not_run;       // why no case was run: features missing, or no case reaches the row
  bool unreachable = false;  // no case reaches it although the device could run it: a gap in ops/cases
  std::vector<std::string> failures;  // one line each
};

// The formats that a row's cases are made for, and that the benchmark measures it with: those of the operand
// that names it (OpCheck::named_by), such as its weights, its cache, or what it quantizes to.
std::vector<DType> formats_of(const gimbal_kernel_info& row);

// Errors: only those of the device itself (no memory, device lost); wrong numbers are in the report.
Result<KernelReport> check_kernel(const Device& device, size_t kernel);

// The same for several kernels, of which those with the same cases share these and what the reference says:
// in the order of by_cases(). Some 20 MB as long as it lives. Not thread-safe.
class KnownCases;
class KernelChecks {
 public:
  KernelChecks();
  ~KernelChecks();
  Result<KernelReport> check(const Device& device, size_t kernel);

 private:
  std::unique_ptr<KnownCases> known_;
};

// These kernels of the device, those with the same cases one behind the other.
std::vector<size_t> by_cases(const Device& device, std::vector<size_t> kernels);
std::vector<size_t> by_cases(const Device& device);  // all

}  // namespace gimbal
