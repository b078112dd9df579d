// Forward declaration of JSON values for headers that only pass them on: base/json.h adds a second to every
// compilation.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace gimbal {

using Json = nlohmann::ordered_json;

}  // namespace gimbal
