// Laying weights out is the work of packing.
#pragma once
#include "backends/cpu/layout.h"
#include "packing/pack.h"
