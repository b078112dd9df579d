// The Metal backend on Apple's systems.
#include "backends/metal/backend.h"
#include "device/backend_impl.h"

GIMBAL_EXPORT_BACKEND(gimbal::gpu::DeviceOf<gimbal::metal::Api>)
