// How the next token is drawn from the model's logits. The library uses this struct itself, so a program, the
// command line and the server have the same settings with the same defaults.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace gimbal::v1 {

// Values only. The same logits, history, settings and seed give the same token on every exact device. A call
// that gets a value out of range returns a Usage error with the member's name in Error::field.
struct Sampling {
  bool greedy = false;       // always the most likely token
  uint64_t seed = 0;         // of the random numbers
  float temperature = 0.8f;  // divides the logits; 0: greedy
  int top_k = 40;            // keep the k largest logits; 0: off
  float top_p = 0.95f;       // keep the most probable tokens that together reach p, from 0 to 1; 1: off
  float min_p = 0.05f;       // drop tokens less probable than this times the best one, 0 to 1; 0: off
  float typical_p = 1;       // keep the tokens closest to the expected surprise that reach p; 1: off
  float repeat_penalty = 1;  // divides positive logits of repeated tokens, multiplies negative ones; 1: off
  float frequency_penalty = 0;  // subtracted once for each time the token occurs
  float presence_penalty = 0;   // subtracted if the token occurs at all
  int penalty_window = 64;      // number of last tokens that the penalties count; 0: none, -1: all
  // (token id, value added to its logit). -infinity forbids the token. Several values for one token add up.
  std::vector<std::pair<int32_t, float>> logit_bias;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
