// LoRA adapters with random numbers, for tests.
#pragma once
#include <string>
#include <vector>

namespace gimbal::test {

inline constexpr float kAdapterScale = 0.7f;

struct Adapted {
  std::string adapter, merged;  // paths
};

// An adapter for matrices of the model that are f32, and a copy of the model with
// W + alpha / rank * kAdapterScale * B A. Another seed: another adapter, in files of its own. `size`:
// multiplies B; the merged model is of no use with another one than 1.
Adapted make_adapter(const std::string& model, unsigned seed = 7, float size = 1);

// The largest difference of two logits at the same place.
double farthest(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace gimbal::test
