// Whole models through AMD's driver interface, over a fake of the driver: host logic only, no GPU.
namespace gimbal::test {
constexpr const char* kBackend = "rocm";
}  // namespace gimbal::test

#include "backends/driver_api/models_tests.h"
