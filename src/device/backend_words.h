// The format of a backend's error text: the failure; in the next line the remedy; optionally, alone in the
// last line, one of the reasons of device/reason.h.
#pragma once
#include <string_view>

#include "base/result.h"

namespace gimbal {

// The constant of device/reason.h with this spelling; nullptr for any other text.
const char* known_reason(std::string_view);

// Makes an error of code NoBackend. `otherwise`: the reason if the text has none. A NULL text gives no
// reason.
Error backend_error(const char* said, const char* otherwise);

}  // namespace gimbal
