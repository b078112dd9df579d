// The options of an engine that serves many at once, which `gimbal serve` hands on to its workers.
#pragma once
#include "apps/options.h"
#include "apps/shared/sharing_options.h"
#include "server/local_model.h"

namespace gimbal {

struct LoadOptions : SharingOptions {
  std::optional<std::string> draft;
};

void declare(Arguments&, LoadOptions&);

// Errors: those of engine_options().
Result<ServingOptions> serving_options(const LoadOptions&, const CommonOptions&);

}  // namespace gimbal
