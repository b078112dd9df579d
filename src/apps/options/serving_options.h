// The options of a model that `gimbal serve` loads, in this process or in workers.
#pragma once
#include "apps/options/options.h"
#include "apps/options/sharing_options.h"
#include "server/local_model.h"

namespace gimbal {

struct LoadOptions : SharingOptions {
  std::optional<std::string> draft, mmproj;
};

void declare(Arguments&, LoadOptions&);

// Errors: those of engine_options(CommonOptions).
Result<LoadSettings> load_settings(const LoadOptions&, const CommonOptions&);
// Errors: those of engine_options(DeviceSettings, ModelOptions).
Result<ServingOptions> serving_options(const LoadSettings&);

}  // namespace gimbal
