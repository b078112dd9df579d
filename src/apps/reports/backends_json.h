// All backends and devices as JSON: the output of `gimbal backends --json`, also used by the server.
#pragma once
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "discovery/registry.h"
#include "engine/kernel_registry.h"

namespace gimbal {

// null for an empty text.
Json text_or_null(const std::string&);

Json backends_json(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                   const std::vector<Variant>& variants, double seconds);

}  // namespace gimbal
