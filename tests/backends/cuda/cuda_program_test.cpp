// The program on fake CUDA devices, which compute on the emulator: asked for by name, softly and strictly,
// with the driver and without.
#include "backends/fake_driver/program_checks.h"
#include "support/cli.h"  // for ctest: it runs the program

namespace gimbal::test {
namespace {

TEST(CudaProgram, UsesADeviceThatIsAskedFor) { check_asked_for("cuda", false, fake_driver()); }
TEST(CudaProgram, IsRefusedOrReplacedWithoutADriver) { check_without_driver("cuda"); }
TEST(CudaProgram, RefusesADeviceWhoseQueueFails) { check_queue_fails("cuda", "cuMemcpyHtoDAsync_v2"); }
TEST(CudaProgram, CompletesATextOfALostDevice) { check_lost("cuda"); }
TEST(CudaProgram, FindsADriverThatArrives) { check_driver_arrives("cuda", {}, fake_driver()); }

}  // namespace
}  // namespace gimbal::test
