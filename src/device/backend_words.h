// What a backend says after a failure, in one text: what happened; in the next line what to do; and, where it
// knows it, one of device/reason.h alone in the last line.
#pragma once
#include <string_view>

#include "base/result.h"

namespace gimbal {

// The constant of device/reason.h that is spelt so; nullptr for any other text.
const char* known_reason(std::string_view);

// A failure of code NoBackend. `otherwise`: the reason where the text names none. A NULL text gives no
// reason.
Error backend_error(const char* said, const char* otherwise);

}  // namespace gimbal
