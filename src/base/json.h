// JSON as a value. Keys keep the order in which they are written.
#pragma once
#include <nlohmann/json.hpp>

namespace gimbal {

using Json = nlohmann::ordered_json;

}  // namespace gimbal
