// Tensors with OpenCL.
#define TESTED_BACKEND "opencl"
#define TESTED_OPTIONS "", "no_subgroups=1"
#include "gpu/blocks_checks.h"
#include "gpu/custom_checks.h"
#include "gpu/tensors_main.h"
