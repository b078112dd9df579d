// The program of the Metal backend, over a pretended Metal with two GPUs: each is opened by its number.
#include "gpu/program_checks.h"
#include "support/cli.h"  // for ctest: it runs the program

namespace gimbal::test {
namespace {

TEST(MetalProgram, OpensTheDeviceThatItIsAskedFor) { check_worker("metal", 2, {}); }

}  // namespace
}  // namespace gimbal::test
