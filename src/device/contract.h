// Checks a backend's tables before use: a backend may be third-party code.
#pragma once
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

}  // namespace gimbal
