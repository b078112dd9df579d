// Prints JSON on stdout. Repairs invalid UTF-8.
#pragma once
#include "base/json.h"

namespace gimbal {

// Indented, or on one line.
void print_json(const Json&, bool one_line = false);

}  // namespace gimbal
