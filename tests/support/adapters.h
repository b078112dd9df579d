// LoRA adapters with random numbers, for tests.
#pragma once
#include <string>

namespace gimbal::test {

inline constexpr float kAdapterScale = 0.7f;

struct Adapted {
  std::string adapter, merged;  // paths
};

// An adapter for matrices of the model that are f32, and a copy of the model with
// W + alpha / rank * kAdapterScale * B A.
Adapted make_adapter(const std::string& model);

}  // namespace gimbal::test
