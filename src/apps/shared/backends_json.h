// Every backend and device as JSON: the report of `gimbal backends --json`, which the server gives, too.
#pragma once
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "discovery/registry.h"
#include "engine/kernel_names.h"

namespace gimbal {

// null for an empty one.
Json text_or_null(const std::string&);

Json backends_json(const std::vector<BackendReport>& reports, const Result<DeviceChoice>& best,
                   const std::vector<Variant>& variants, double seconds);

}  // namespace gimbal
