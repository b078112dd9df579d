// Whole models through NVIDIA's driver interface, over a fake of the driver: host logic only, no GPU.
namespace gimbal::test {
constexpr const char* kBackend = "cuda";
}  // namespace gimbal::test

#include "backends/driver_api/models_tests.h"
