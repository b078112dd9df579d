// Where this program looks for plugins and keeps its records of drivers. The application passes these to
// the library, because only the application reads the environment.
#pragma once
#include "discovery/registry.h"

namespace gimbal {

// Plugins: the folders of GIMBAL_BACKEND_PATH (separated by colons), the program's own folder, lib/gimbal
// beside it and, if this code is part of a library, the library's folder and gimbal in it.
BackendPlaces backend_places();

}  // namespace gimbal
