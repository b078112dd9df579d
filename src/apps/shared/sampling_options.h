// The options that say how tokens are chosen: the same words in every program that generates.
#pragma once
#include <optional>

#include "apps/shared/arguments.h"
#include "runtime/sampler.h"

namespace gimbal {

struct SamplingOptions {
  SamplerSettings settings;
  std::optional<uint64_t> seed;

  void declare(Arguments&);  // as a section of their own
  // After parsing: fills in `settings`, with a seed of its own where none was given. Errors: Usage for values
  // out of range.
  Status finish();
};

}  // namespace gimbal
