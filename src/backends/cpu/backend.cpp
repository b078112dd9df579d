#include "device/abi.h"
extern "C" const gimbal_backend* gimbal_backend_cpu(void) { return nullptr; }
