// Tensors on the emulator, whose kernels are the texts of all GPUs.
#define TESTED_BACKEND "emulator"
#define TESTED_OPTIONS "", "racecheck=1 seed=7", "bounds=1 subgroup=8", "racecheck=1 subgroup=32"
#include "gpu/blocks_checks.h"
