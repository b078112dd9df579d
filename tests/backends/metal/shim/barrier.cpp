// Where the lanes of a group wait for each other: the emulator's fibers take turns there.
#include "backends/metal/shim/kernel.h"

namespace metal {

enum class mem_flags;
void threadgroup_barrier(mem_flags flags, int line);

void threadgroup_barrier(mem_flags, int line) {
  gimbal::emulator::Lane* mine = gimbal::test::running_lane;
  mine->arrive(*mine, line);
  gimbal::test::running_lane = mine;  // others ran in between
}

}  // namespace metal

namespace gimbal::test {
constinit thread_local emulator::Lane* running_lane = nullptr;
}
