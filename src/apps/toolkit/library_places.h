// Where C++ inference libraries are searched for, by the environment. Also compiled into the configure step
// (cmake/external_llama.cmake).
#pragma once
#include "inspection/library_search.h"

namespace gimbal {

LibraryPlaces library_places();

}  // namespace gimbal
