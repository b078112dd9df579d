// How the next token is drawn from the model's logits. The library uses this struct itself, so a program, the
// command line and the server have the same settings with the same defaults.
#pragma once
#include <cstdint>
#include <string>
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
  // Temperature by how undecided the model is: from temperature - range to temperature + range, with the
  // entropy over its largest value raised to the exponent; range 0: off.
  float dynatemp_range = 0, dynatemp_exponent = 1;
  float top_n_sigma = 0;  // keep logits within so many standard deviations of the largest; 0: off
  // With this probability, drop all but the least probable of the tokens that reach the threshold; 0: off.
  float xtc_probability = 0, xtc_threshold = 0.1f;
  // Tokens that would make a repetition longer lose multiplier * base^(length - allowed length); 0: off. A
  // repetition does not reach over a token whose text contains one of the breakers.
  float dry_multiplier = 0, dry_base = 1.75f;
  int dry_allowed_length = 2, dry_penalty_last_n = -1;  // of the last tokens, -1: all
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  // 1, 2: versions of Mirostat, which holds the surprise near tau bits and replaces the filters; 0: off.
  int mirostat = 0;
  float mirostat_tau = 5, mirostat_eta = 0.1f;
  // Draws tokens near this probability, as an average over the last ones; -1: off. Decay: how slowly the
  // average forgets.
  float adaptive_target = -1, adaptive_decay = 0.9f;
  // (token id, value added to its logit). -infinity forbids the token. Several values for one token add up.
  std::vector<std::pair<int32_t, float>> logit_bias;
};

}  // namespace gimbal::v1

namespace gimbal {
using namespace v1;
}
