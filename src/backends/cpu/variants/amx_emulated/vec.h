// For tests only: see tile.h.
#pragma once
#include "backends/cpu/variants/baseline/vec.h"
