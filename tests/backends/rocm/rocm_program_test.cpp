// The program on fake ROCm devices, which compute on the emulator: asked for by name, softly and strictly,
// with the driver and without.
#include "backends/fake_driver/program_checks.h"
#include "support/cli.h"  // for ctest: it runs the program

namespace gimbal::test {
namespace {

TEST(RocmProgram, UsesADeviceThatIsAskedFor) { check_asked_for("rocm", false, fake_driver()); }
TEST(RocmProgram, IsRefusedOrReplacedWithoutADriver) { check_without_driver("rocm"); }
TEST(RocmProgram, RefusesADeviceWhoseQueueFails) { check_queue_fails("rocm", "hipMemcpyHtoDAsync"); }
TEST(RocmProgram, CompletesATextOfALostDevice) { check_lost("rocm"); }
TEST(RocmProgram, FindsADriverThatArrives) { check_driver_arrives("rocm", {}, fake_driver()); }

}  // namespace
}  // namespace gimbal::test
