// Tensors on Metal. Off Apple's systems: on a pretended Metal (metal/metal.cmake), which runs the texts that
// a Mac would compile.
#define TESTED_BACKEND "metal"
#define TESTED_OPTIONS "", "staging=1"
#include "gpu/blocks_checks.h"
#include "gpu/tensors_main.h"
