#pragma once
#include "backends/cpu/variants/amx_emulated/tile.h"
