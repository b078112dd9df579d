// Weight packing is shared with the GPUs: see src/packing.
#pragma once
#include "backends/cpu/layout.h"
#include "packing/pack.h"
