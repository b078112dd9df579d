// The filters of sampling, each a function that shortens a list of candidates. The order of the result is
// fully determined (ties go to the lower id), because sums of probabilities depend on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gimbal {

inline constexpr double kNatsPerBit = 0.69314718055994530942;  // log(2)

struct Candidate {
  int32_t id;
  float logit;         // finite
  double probability;  // set by set_probabilities
};
using Candidates = std::vector<Candidate>;

// Softmax of logit / temperature over the list; temperature > 0.
void set_probabilities(Candidates& list, double temperature);

// The following need at least one candidate and leave at least one.

// The k largest logits, k >= 1, sorted.
void keep_top_k(Candidates& list, int k);
// The fewest most probable candidates whose probabilities reach mass, sorted.
void keep_top_p(Candidates& list, double mass);
// The candidates at least `ratio` times as probable as the best one; keeps the order.
void keep_min_p(Candidates& list, double ratio);
// The logits within n standard deviations of the largest (C. Tang et al., "Top-nsigma", arXiv:2411.07641); n
// > 0; keeps the order.
void keep_top_n_sigma(Candidates& list, double n);
// Drops the candidates of at least this probability, but the least probable of them (XTC, by p-e-w); keeps
// the order.
void drop_top_choices(Candidates& list, double threshold);
// The candidates no more surprising than `bits` (Mirostat 2.0), sorted, with their probabilities.
void keep_surprise(Candidates& list, double bits, double temperature);
// The candidates that Mirostat 1.0 keeps for this bound on the surprise, sorted, with their probabilities.
void keep_mirostat(Candidates& list, double bits, double temperature, size_t vocabulary);
// The temperature by the entropy of the candidates (dynamic temperature).
double dynamic_temperature(Candidates& list, double temperature, double range, double exponent);
// Gives candidates a probability by how near theirs is to the target (adaptive-p).
void draw_to_target(Candidates& list, double target);
// The fewest candidates whose probabilities reach mass, taken in the order of how little -log(probability)
// differs from its expectation, the entropy (C. Meister et al., "Locally typical sampling", 2022); in that
// order.
void keep_typical(Candidates& list, double mass);

}  // namespace gimbal
