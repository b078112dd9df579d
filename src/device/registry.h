// The backends that this executable was linked with.
#pragma once
#include "device/abi.h"

namespace gimbal {

using LinkedBackends = const gimbal_backend_entry*;
LinkedBackends linked_backends();  // generated per executable, null-terminated

}  // namespace gimbal
