// The Metal backend of the tests: the backend's own files over the pretended Metal, with the engine's
// kernels.
#include "backends/metal/backend.h"

#include "backends/metal/fake/control.h"
#include "device/backend_impl.h"

namespace gimbal::test {
std::span<const CompiledText> engine_texts();  // generated, as the next: metal.cmake
std::span<const CompiledText> tensor_texts();
}  // namespace gimbal::test

extern "C" const gimbal_backend* gimbal_backend_metal_pretended(void) {
  gimbal::test::know_texts(gimbal::test::engine_texts());
  gimbal::test::know_texts(gimbal::test::tensor_texts());
  static constexpr gimbal_backend table =
      gimbal::BackendTable<gimbal::gpu::DeviceOf<gimbal::metal::Api>>::make("metal");
  return &table;
}
