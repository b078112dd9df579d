// For tests only: the vectors of the real AMX rows over emulated tiles.
#pragma once
#include "backends/cpu/variants/amx/vec.h"
