// Codebooks of the IQ formats: grid points of 4 or 8 values, each value one of 8 or 3 levels. For every
// choice of levels, a codebook has the grid points next to it, so that a search looks at few of them.
#pragma once
#include <stdint.h>

#include <vector>

namespace gimbal::encoding {

// A point is two halves of two or four values: each half is a number with a digit per value, lowest value
// first.
struct Codebook {
  int values, levels;                // 8 values of 3 levels, or 4 values of 8
  int halves;                        // numbers of a half: 81 or 64
  int near;                          // points for each pair of halves
  std::vector<uint8_t> low, high;    // the halves of each point
  std::vector<uint16_t> neighbours;  // [high half][low half][near], nearest first

  const uint16_t* around(int low_half, int high_half) const {
    return neighbours.data() + int64_t(high_half * halves + low_half) * near;
  }
};

// Built at first use, by any thread. `grid`: as in tensor/quant/values.h, `bits` for each value.
const Codebook& codebook_of_iq1();
const Codebook& codebook_of_iq2_xxs();
const Codebook& codebook_of_iq2_xs();
const Codebook& codebook_of_iq2_s();
const Codebook& codebook_of_iq3_xxs();
const Codebook& codebook_of_iq3_s();

}  // namespace gimbal::encoding
