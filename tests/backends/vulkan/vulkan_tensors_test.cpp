// Tensors with Vulkan.
#define TESTED_BACKEND "vulkan"
#define TESTED_OPTIONS "", "split_fma=1 no_subgroups=1"
#include "gpu/blocks_checks.h"
#include "gpu/custom_checks.h"
#include "gpu/tensors_main.h"
