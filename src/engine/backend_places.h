// Where this program looks for plugins, and where it remembers drivers: what the library is told
// by the application, which alone knows the environment.
#pragma once
#include "discovery/registry.h"

namespace gimbal {

// Plugins: the folders of GIMBAL_BACKEND_PATH (colons between), the program's own folder, and lib/gimbal
// beside it.
BackendPlaces backend_places();

}  // namespace gimbal
