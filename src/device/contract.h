// The checks that a backend's tables pass before anything in them is used: a backend is another's code.
#pragma once
#include "base/result.h"
#include "device/abi.h"

namespace gimbal {

// `whose` begins the message: "the plugin /usr/lib/gimbal/x.so". Errors: NoBackend with Error::reason
// abi-mismatch or broken-plugin.
Status check_plugin(const gimbal_plugin*, const std::string& whose);
Status check_table(const gimbal_backend*, const std::string& whose);

// A table as long as this program knows it. What the backend's own does not reach is NULL. Of a checked
// table.
gimbal_backend as_known_here(const gimbal_backend&);

}  // namespace gimbal
