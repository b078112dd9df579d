// The programs on a WebGPU library's device. ctest names the library and its driver.
#define TESTED_BACKEND "webgpu"
#include "gpu/device_main.h"
#include "gpu/program_checks.h"
#include "support/cli.h"  // for ctest: it runs the program

namespace gimbal::test {
namespace {

// No tool tells of WebGPU's devices; the library itself was asked by device_main.h, in this process.
TEST(WebgpuProgram, ListsWhatTheLibraryOpens) {
  auto opened = open_device({"webgpu", 0, true, device_options()});
  ASSERT_TRUE(opened) << opened.error().message;
  const gimbal_device_info i = opened->device->describe();
  check_listed("webgpu", {{i.name, "", i.memory_total, i.software != 0, i.unified_memory != 0}}, {});
  if (i.software) { EXPECT_TRUE(i.unified_memory); }
}
TEST(WebgpuProgram, UsesADeviceThatIsAskedFor) {
  auto opened = open_device({"webgpu", 0, true, device_options()});
  ASSERT_TRUE(opened) << opened.error().message;
  check_asked_for("webgpu", opened->device->describe().software, {});
}
TEST(WebgpuProgram, HasLayersByNumber) { check_layers_by_number("webgpu", {}); }
TEST(WebgpuProgram, NeedsNothingOfThePath) { check_without_path("webgpu", {}); }
TEST(WebgpuProgram, FindsALibraryThatArrives) {
  const std::string there = from_environment("LD_LIBRARY_PATH");
  check_driver_arrives("webgpu", {{"LD_LIBRARY_PATH", "/nonexistent"}}, {{"LD_LIBRARY_PATH", there}});
}
TEST(WebgpuProgram, TheWorkerTakesADeviceByNumber) { check_worker("webgpu", 1, {}); }

}  // namespace
}  // namespace gimbal::test
