// hot: Encoders of blocks of 32 values with a unit of their own, by least weighted error: IQ4_NL, and the
// four formats whose unweighted encoders are ggml's (tensor/quant_encode.cpp). A lane is a block.
#include <cstring>
#include <utility>

#include "tensor/block_encode.h"
#include "tensor/encode/block_input.h"
#include "tensor/encode/blocks.h"
#include "tensor/encode/fits.h"
#include "tensor/encode/levels.h"

namespace gimbal::encoding {
namespace {

// 4-bit codes: values 0 to 15 in the low halves.
void put_codes(uint8_t* at, const uint8_t* code) {
  for (int l = 0; l < 16; l++) at[l] = uint8_t((code[l] & 15) | (code[l + 16] & 15) << 4);
}
void put_fifth_bits(uint8_t* at, const uint8_t* code) {
  uint32_t top = 0;
  for (int i = 0; i < 32; i++) top |= uint32_t(code[i] >> 4) << i;
  put(at, top);
}

struct Block32 {
  uint16_t unit, offset;
  int8_t level[32];
};

// kLanes blocks, each with a size of its own.
struct Blocks32 {
  BlockInput<32> block[kLanes];
  Groups<32> groups;

  Blocks32(const float* x, const float* importance)
      : Blocks32(x, importance, std::make_integer_sequence<int, kLanes>()) {
    for (int k = 0; k < kLanes; k++)
      for (int i = 0; i < 32; i++) groups.x[i][k] = block[k].x[i], groups.w[i][k] = block[k].w[i];
  }

 private:
  template <int... k>
  Blocks32(const float* x, const float* importance, std::integer_sequence<int, k...>)
      : block{BlockInput<32>(x + 32 * k, importance ? importance + 32 * k : nullptr)...} {}
};

float error_of(const BlockInput<32>& in, const int8_t* level, float unit) {
  float error = 0;
  for (int i = 0; i < 32; i++) {
    const float miss = in.x[i] - unit * float(level[i]);
    error += in.w[i] * miss * miss;
  }
  return error;
}

// If the levels hold the block but for the rounding of the unit to a half (kHeld, is_coarse()), other
// units may round less: the extreme value is brought to each level.
template <class Levels>
void round_less(const BlockInput<32>& in, float unit, Block32& block) {
  const float energy = energy_of(in), extreme = extreme_of(in.x, 32);
  float least = error_of(in, block.level, unit);
  if (!(least < kHeld * energy) && !is_coarse(block.unit)) return;
  for (float at = Levels::first; at <= Levels::last && least > 0; at++) {
    if (at == 0) continue;
    Block32 tried;
    float rounded = extreme / at;
    tried.unit = in.stored(rounded);
    const float inverse = quotient(1, rounded);
    for (int i = 0; i < 32; i++) tried.level[i] = int8_t(Levels::level(all(in.x[i] * inverse))[0]);
    if (const float e = error_of(in, tried.level, rounded); e < least)
      least = e, block.unit = tried.unit, std::memcpy(block.level, tried.level, sizeof block.level);
  }
}

template <class Levels, int count>
void encode_symmetric(const float* x, const float* importance, const float (&factors)[count], Block32* out) {
  const Blocks32 in(x, importance);
  const Groups<32>& g = in.groups;
  Lanes unit = best_scales<Levels>(g, factors);
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < kLanes; k++) {
      float rounded = unit[k];
      out[k].unit = in.block[k].stored(rounded), unit[k] = rounded;
    }
    const Lanes inverse = quotient(all(1), unit);
    if (!round) {
      const ScaleSums s = sums_of<Levels>(g, inverse);
      unit = quotient(s.product, s.square);
      continue;
    }
    for (int i = 0; i < 32; i++) {
      const Lanes level = Levels::level(g.x[i] * inverse);
      for (int k = 0; k < kLanes; k++) out[k].level[i] = int8_t(level[k]);
    }
  }
  for (int k = 0; k < kLanes; k++) round_less<Levels>(in.block[k], unit[k], out[k]);
}

template <int top, int count, int shift_count>
void encode_offset(const float* x, const float* importance, const float (&covers)[count],
                   const float (&shifts)[shift_count], Block32* out) {
  const Blocks32 in(x, importance);
  const Groups<32>& g = in.groups;
  const OffsetFit fit = best_offsets(g, top, covers, shifts, kOffsetRoundsOf32, true);
  Lanes unit{}, offset{};
  for (int k = 0; k < kLanes; k++) {
    float rounded = fit.scale[k], low = -fit.offset[k];
    out[k].unit = in.block[k].stored(rounded), out[k].offset = in.block[k].stored(low);
    unit[k] = rounded, offset[k] = low;
  }
  const Lanes inverse = quotient(all(1), unit);
  for (int i = 0; i < 32; i++) {
    const Lanes code = nearest((g.x[i] - offset) * inverse, 0, top);
    for (int k = 0; k < kLanes; k++) out[k].level[i] = int8_t(code[k]);
  }
}

}  // namespace

void encode_weighted_q4_0(const float* x, const float* importance, uint8_t* blocks) {
  Block32 b[kLanes];
  encode_symmetric<Whole<-8, 7>>(x, importance, kFactors4, b);
  for (int k = 0; k < kLanes; k++, blocks += 18) {
    uint8_t code[32];
    for (int i = 0; i < 32; i++) code[i] = uint8_t(b[k].level[i] + 8);
    put(blocks, b[k].unit), put_codes(blocks + 2, code);
  }
}

void encode_weighted_q5_0(const float* x, const float* importance, uint8_t* blocks) {
  Block32 b[kLanes];
  encode_symmetric<Whole<-16, 15>>(x, importance, kFactors5, b);
  for (int k = 0; k < kLanes; k++, blocks += 22) {
    uint8_t code[32];
    for (int i = 0; i < 32; i++) code[i] = uint8_t(b[k].level[i] + 16);
    put(blocks, b[k].unit), put_fifth_bits(blocks + 2, code), put_codes(blocks + 6, code);
  }
}

void encode_weighted_q4_1(const float* x, const float* importance, uint8_t* blocks) {
  Block32 b[kLanes];
  encode_offset<15>(x, importance, kCoversOf4, kShiftsOf4, b);
  for (int k = 0; k < kLanes; k++, blocks += 20) {
    uint8_t code[32];
    for (int i = 0; i < 32; i++) code[i] = uint8_t(b[k].level[i]);
    put(blocks, b[k].unit), put(blocks + 2, b[k].offset), put_codes(blocks + 4, code);
  }
}

void encode_weighted_q5_1(const float* x, const float* importance, uint8_t* blocks) {
  Block32 b[kLanes];
  encode_offset<31>(x, importance, kCoversOf5, kShiftsOf5, b);
  for (int k = 0; k < kLanes; k++, blocks += 24) {
    uint8_t code[32];
    for (int i = 0; i < 32; i++) code[i] = uint8_t(b[k].level[i]);
    put(blocks, b[k].unit), put(blocks + 2, b[k].offset);
    put_fifth_bits(blocks + 4, code), put_codes(blocks + 8, code);
  }
}

void encode_weighted_iq4_nl(const float* x, const float* importance, uint8_t* blocks) {
  Block32 b[kLanes];
  encode_symmetric<NonLinear>(x, importance, kFactorsNonLinear, b);
  for (int k = 0; k < kLanes; k++, blocks += 18) {
    uint8_t code[32];
    for (int i = 0; i < 32; i++) code[i] = uint8_t(nonlinear_code(b[k].level[i]));
    put(blocks, b[k].unit), put_codes(blocks + 2, code);
  }
}

}  // namespace gimbal::encoding
