// The layouts of packed weights and caches are those of packing; here they are the CPU's.
#pragma once
#include "packing/layout.h"

namespace gimbal::cpu {
using namespace packed;
}
