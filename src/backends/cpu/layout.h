// The layouts of packed weights and caches are those of backends/packed; here they are the CPU's.
#pragma once
#include "backends/packed/layout.h"

namespace gimbal::cpu {
using namespace packed;
}
