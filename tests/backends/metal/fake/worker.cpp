// gimbal-worker-metal over the pretended Metal, as on a Mac with two GPUs.
#include "apps/worker/worker.h"
#include "backends/metal/fake/control.h"

extern "C" const gimbal_backend* gimbal_backend_metal_pretended(void);

struct Built {
  static constexpr const char* kName = "metal";
  static constexpr bool kHasGpus = true;
  static const gimbal_backend& table() { return *gimbal_backend_metal_pretended(); }
};

int main(int argc, char** argv) {
  gimbal::test::pretended_metal().devices = 2;
  return gimbal::worker::run<Built>(argc, argv);
}
