// JSON on stdout. Text that is not UTF-8 is repaired, never refused.
#pragma once
#include "base/json.h"

namespace gimbal {

// Indented, or on one line.
void print_json(const Json&, bool one_line = false);

}  // namespace gimbal
