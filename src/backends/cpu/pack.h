// Laying weights out is the work of backends/packed.
#pragma once
#include "backends/cpu/layout.h"
#include "backends/packed/pack.h"
