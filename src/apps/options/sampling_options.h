// The sampling options: the same in every program that generates.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/toolkit/arguments.h"
#include "runtime/sampler.h"

namespace gimbal {

struct SamplingOptions {
  SamplerSettings settings;
  std::optional<uint64_t> seed;
  std::map<std::string, std::vector<std::string>> texts;  // typed, by the setting's name

  void declare(Arguments&);  // in their own section
  // Call it after parsing: fills in `settings`, with a random seed if none was given. Errors: Usage for
  // values out of range.
  Status finish();
};

}  // namespace gimbal
