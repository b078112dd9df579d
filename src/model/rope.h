// Rotary position embedding: the angles, made once per position on the host in double precision, so that
// every layer of every backend rotates by the same numbers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "files/model_source.h"
#include "model/step.h"

namespace gimbal {

// How the pairs of a head are dealt to the numbers of a place, by the key "<arch>.rope.dimension_sections":
// [a, b, c]: a pairs to the time, b to the line, c to the column, each in one piece (Qwen2-VL) or in turns of
// three (Qwen3-VL). The others turn by the time.
enum class RopeSections : uint8_t { Blocks, InTurn };

struct RopeSettings {
  int rotated = 0;  // rotated values of every head, in pairs
  double base = 10000;
  bool scaled = true;     // by "<arch>.rope.scaling." of the file; false: not scaled
  bool divided = true;    // by the tensor rope_freqs.weight, if there is one
  int context = 0;        // positions the model is loaded for; selects longrope's factors
  double magnitude = 0;   // of every (cos, sin); 0: by the scaling
  double beta_fast = 32;  // YaRN's, where the file does not say it
  int divisors = 0;       // values of rope_freqs.weight: the first are these pairs'; 0: as many as pairs
  RopeSections sections = RopeSections::Blocks;
  int ahead = 0;  // added to every position
};

class RopeAngles {
 public:
  RopeAngles() = default;
  // Rotates `rotated` values of every head, in pairs, with frequencies base^(-2i/rotated). The file can
  // change them: by its keys "<arch>.rope.scaling." (linear: positions divided by the factor; yarn: see the
  // source) and by the tensor rope_freqs.weight (each frequency divided by its value; Llama 3.1). Errors:
  // Unsupported scaling, Malformed factors.
  static Result<RopeAngles> create(const ModelSource& file, const std::string& arch, int rotated,
                                   double base) {
    return create(file, arch, {.rotated = rotated, .base = base});
  }
  // Also longrope: each frequency divided by its value of rope_factors_long.weight, or of
  // rope_factors_short.weight if the context is no longer than the original one.
  static Result<RopeAngles> create(const ModelSource& file, const std::string& arch, const RopeSettings&);

  int rotated() const { return int(frequencies_.size()) * 2; }
  // Writes rotated() floats: cos, sin of each pair's angle at this position.
  void fill(int64_t position, float* cos_sin) const;
  // The same at a place. Only with sections are its three numbers told apart.
  void fill(const RopePosition&, float* cos_sin) const;
  bool in_sections() const { return !axes_.empty(); }

 private:
  void fill_pair(double angle, float* cos_sin) const;

  std::vector<double> frequencies_;
  std::vector<int32_t RopePosition::*> axes_;  // by pair; empty: no sections
  double magnitude_ = 1;                       // of every (cos, sin): YaRN scales the attention by it
  int ahead_ = 0;
};

}  // namespace gimbal
