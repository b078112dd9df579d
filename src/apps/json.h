// JSON on stdout. Keys keep the order in which they are written; text that is not UTF-8 is repaired, never
// refused.
#pragma once
#include <nlohmann/json.hpp>

namespace gimbal {

using Json = nlohmann::ordered_json;

// Indented, or on one line.
void print_json(const Json&, bool one_line = false);

}  // namespace gimbal
