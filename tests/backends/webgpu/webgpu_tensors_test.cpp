// Tensors with WebGPU.
#define TESTED_BACKEND "webgpu"
#define TESTED_OPTIONS "", "split_fma=1"
#include "gpu/blocks_checks.h"
#include "gpu/custom_checks.h"
#include "gpu/tensors_main.h"
