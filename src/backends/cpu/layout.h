// The CPU uses the layouts of src/packing for packed weights and caches.
#pragma once
#include "packing/layout.h"

namespace gimbal::cpu {
using namespace packing;
}
