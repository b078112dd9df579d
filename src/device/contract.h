// Checks a backend's tables before use: a backend may be third-party code.
#pragma once
#include <string_view>

#include "base/result.h"
#include "device/abi.h"

namespace gimbal {

// `whose` begins the message: "the plugin /usr/lib/gimbal/x.so". Errors: NoBackend with Error::reason
// abi-mismatch or broken-plugin.
Status check_plugin(const gimbal_plugin*, const std::string& whose);
Status check_table(const gimbal_backend*, const std::string& whose);

// Copies a checked table at this program's version of the struct. Entries beyond the backend's own size are
// NULL.
gimbal_backend as_known_here(const gimbal_backend&);

// The format of a backend's error text: the failure; in the next line the remedy; optionally, alone in the
// last line, one of the reasons of device/reason.h.

// The constant of device/reason.h with this spelling; nullptr for any other text.
const char* known_reason(std::string_view);

// Makes an error of code NoBackend. `otherwise`: the reason if the text has none. A NULL text gives no
// reason.
Error backend_error(const char* said, const char* otherwise);

}  // namespace gimbal
