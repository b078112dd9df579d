// For tests only: see variants/amx_emulated/tile.h.
#pragma once
#include "backends/cpu/variants/baseline/vec.h"
