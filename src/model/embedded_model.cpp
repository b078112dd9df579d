// Gives the bytes that embedded_model.S places in the program a C++ name.
#include "model/embedded_model.h"

// Hidden: the linker then needs no table entry for them, in position-independent code either.
extern "C" {
__attribute__((visibility("hidden"))) extern const std::byte gimbal_embedded_model[];
__attribute__((visibility("hidden"))) extern const uint64_t gimbal_embedded_model_size;
}

namespace gimbal {

Bytes embedded_model() { return {gimbal_embedded_model, gimbal_embedded_model_size}; }

}  // namespace gimbal
