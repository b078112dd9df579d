// gimbal bench --kernels: the speed of each kernel alone, without a model.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/options/options.h"
#include "base/result.h"

namespace gimbal {

struct KernelBenchOptions {
  std::optional<std::string> pattern;  // of names
  std::vector<int> rows{1, 512};
  bool all = false;  // also kernel rows that another one outranks
  int milliseconds = 200;
  int megabytes = 1000;  // as in the measurement of limits: a large cache holds part of twice its size
  bool measure_again = false;
  std::optional<int> limit_megabytes;  // as in EngineOptions
};

// Errors: those of open_device(); Usage if the pattern matches nothing; those of the device.
Result<int> bench_kernels(const CommonOptions&, const KernelBenchOptions&, bool json, bool quiet);

}  // namespace gimbal
