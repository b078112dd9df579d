// Models with a layer that guesses further tokens (multi-token prediction), made of models of the reference
// data.
#pragma once
#include <string>

namespace gimbal::test {

struct NextnParts {
  float embedding = 0.7f, state = 0.7f;  // how much of each the layer is given
  bool mixed = true;                     // both go through random numbers; or as they are
  bool still = false;                    // blocks add nothing to what goes through them
  bool own_norm = true;                  // in front of the head; else the model's
};
// The path of a copy of the model in which a copy of its last layer with attention is that layer; its other
// weights are f32. Fails the calling test when it cannot be written.
std::string with_nextn(const std::string& model, const NextnParts& parts = {});

}  // namespace gimbal::test
