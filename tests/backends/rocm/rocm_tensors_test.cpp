// Tensors through AMD's driver interface, over a fake of the driver whose launches run the same texts in the
// emulator: host logic only, no GPU.
#define TESTED_BACKEND "rocm"
#define TESTED_OPTIONS "", "graphs=0"
#include "backends/driver_api/tensors_tests.h"
