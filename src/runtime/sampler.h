// Chooses the next token from the model's logits. The same logits, history, settings and seed give the same
// token on every machine: own random numbers, own exp and log, ties always to the lower token id.
//
// The steps, in this order (that of llama.cpp's default chain):
//   0. the mask: tokens that a grammar forbids get -infinity
//   1. logit bias
//   2. penalties: repeat, then frequency and presence; then DRY
//   3. top-n-sigma, top-k
//   4. typical
//   5. top-p
//   6. min-p, XTC
//   7. temperature, also dynamic, and the draw; or adaptive-p's draw
// Probabilities in steps 4 to 6 are those at temperature 1 of the candidates left by the step before. Greedy
// sampling (or temperature 0) takes the largest logit after step 2. Mirostat takes the place of steps 3 to 6.
//
// Mirostat and adaptive-p remember one number from token to token (memory()). A draft that is not accepted
// was never picked, so it leaves no trace.
#pragma once
#include <gimbal/sampling.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/random.h"
#include "runtime/sampler_filters.h"

namespace gimbal {

using SamplerSettings = v1::Sampling;

// Usage error, naming the field, for the first setting that is out of range.
Status validate(const SamplerSettings& settings);
// Also refuses a bias for a token outside a vocabulary of this size.
Status validate(const SamplerSettings& settings, size_t vocabulary);

// Checks that a token can be chosen from these. Errors: Malformed if one is NaN or +infinity, or all are
// -infinity, which only damaged weights produce; Failed if there are none.
Status check_logits(std::span<const float> logits);

class Tokenizer;

class Sampler {
 public:
  // If validate() refuses the settings, every call below returns that error. `tokenizer`: for the texts that
  // end repetitions for DRY; nullptr: none does. It must outlive this.
  explicit Sampler(SamplerSettings settings, const Tokenizer* tokenizer = nullptr);

  // The next token's id: an index into logits (one per token of the vocabulary; -infinity: impossible).
  // history: prompt and generated tokens, oldest first; ids outside the vocabulary (placeholders of images)
  // are ignored. Takes exactly one random number when not greedy (two with XTC), none when greedy. Allocates
  // in the first call only. Errors: those of check_logits(): such numbers must never become text. Usage when
  // the logit bias names a token that the vocabulary lacks or leaves no token possible. mask: a bit for each
  // token that may be picked, 64 in a word (Constraint::allowed()); empty: any may.
  Result<int32_t> pick(std::span<const float> logits, std::span<const int32_t> history,
                       std::span<const uint64_t> mask = {});

  // The candidates that pick() would draw from, with their final probabilities (sum 1). Draws nothing; XTC
  // acts if its probability is 1.
  // Valid until the next call.
  Result<std::span<const Candidate>> candidates(std::span<const float> logits,
                                                std::span<const int32_t> history,
                                                std::span<const uint64_t> mask = {});

  // The number of largest logits (falling, equal ones by rising id) that suffice for pick() with these
  // settings; 0: it needs every logit (logit bias, penalties, no top-k).
  int leading() const;
  // As pick(), the same token for the same seed, from the leading() largest logits and their ids
  // (session.h). Returns nullopt and draws nothing if the first is not finite; then pick() gives the token,
  // or an error.
  Result<std::optional<int32_t>> pick_top(std::span<const float> logits, std::span<const float> ids);

  // Skips the random numbers of this many picks, as if they had been made.
  void skip(size_t picks);
  // The state of Mirostat (its bound on the surprise) or adaptive-p (its average) after the last pick.
  double memory() const { return memory_; }
  void remember(double memory) { memory_ = memory; }

  const SamplerSettings& settings() const { return settings_; }
  // The largest memory of one sampler, in bytes.
  static constexpr uint64_t max_bytes(uint64_t vocabulary) {
    return vocabulary * (sizeof(float) + sizeof(int32_t) + sizeof(Candidate));
  }

 private:
  // Steps 0 to 2; returns logits itself when there is nothing to change.
  Result<std::span<const float>> adjust(std::span<const float> logits, std::span<const int32_t> history,
                                        std::span<const uint64_t> mask);
  bool greedy() const { return settings_.greedy || settings_.temperature == 0; }
  bool penalizes() const;
  bool lengthens() const { return settings_.dry_multiplier > 0 && settings_.dry_penalty_last_n != 0; }
  bool adapts() const { return settings_.adaptive_target >= 0; }
  void filter();   // steps 4 to 7, but for the draw
  int32_t draw();  // of left_
  void take_chance();
  void penalize(std::span<const int32_t> window);
  void penalize_repetition(std::span<const int32_t> window);
  bool breaks(int32_t token) const;

  SamplerSettings settings_;
  std::optional<Error> refused_;
  const Tokenizer* tokenizer_;
  Random random_;
  double memory_;
  bool xtc_now_;                  // XTC acts on the next pick
  double temperature_ = 1;        // of the last filter()
  std::vector<int32_t> repeats_;  // of DRY
  std::vector<float> adjusted_;   // logits after steps 0 to 2
  std::vector<int32_t> counts_;   // per token: occurrences in the window; all 0 between calls
  std::vector<Candidate> left_;   // steps 3 to 7
};

}  // namespace gimbal
