// Blocks of 256 values with one unit and small whole scales for their groups: the scales of the groups are
// fitted first, then the unit, then the codes of the scale that the block can hold.
#pragma once
#include "tensor/encode/block_input.h"
#include "tensor/encode/fits.h"

namespace gimbal::encoding {

// value = unit * scale * level.
template <int N>
struct ScaledBlock {
  static constexpr int groups = 256 / N;
  uint16_t unit = 0;
  float rounded_unit = 0;  // of the values of BlockInput
  int scale[groups] = {};
  int8_t level[256] = {};
  float gain = -3e38f;  // the reduction of the error: exact to a millionth of the energy

  float error(const BlockInput<256>& in) const {
    float error = 0;
    for (int i = 0; i < 256; i++) {
      const float miss = in.x[i] - rounded_unit * float(scale[i / N]) * float(level[i]);
      error += in.w[i] * miss * miss;
    }
    return error;
  }
};

// The groups of a block, kLanes at a time.
template <int N>
struct BlockGroups {
  static constexpr int runs = 256 / N / kLanes;
  Groups<N> run[runs];

  explicit BlockGroups(const BlockInput<256>& in) {
    for (int r = 0; r < runs; r++) run[r].load(in.x + N * kLanes * r, in.w + N * kLanes * r);
  }
};

// Levels and scales of this unit (which is rounded to the half it is stored as). A group's scale is the
// nearest to the one its values fit; once more from its levels.
template <class Levels, int N>
void encode_with_unit(const BlockInput<256>& in, const BlockGroups<N>& all_groups, const float* fitted,
                      float unit, float least, float most, ScaledBlock<N>& out, float& next_unit) {
  out.unit = in.stored(unit), out.rounded_unit = unit;
  const float per_unit = quotient(1, unit);
  float product = 0, square = 0;
  out.gain = 0;
  for (int first = 0; first < out.groups; first += kLanes) {
    const Groups<N>& g = all_groups.run[first / kLanes];
    Lanes wanted{};
    for (int k = 0; k < kLanes; k++) wanted[k] = fitted[first + k];
    Lanes scale = nearest(wanted * per_unit, least, most), levels[N];
    ScaleSums s{};
    Lanes gain{};
    for (int round = 0; round < 2; round++) {
      const Lanes inverse = quotient(all(1), scale * unit);
      s = {all(0), all(0)};
      for (int i = 0; i < N; i++) {
        levels[i] = Levels::level(g.x[i] * inverse);
        const Lanes weighted = g.w[i] * levels[i];
        s.product += weighted * g.x[i], s.square += weighted * levels[i];
      }
      if (round) break;
      scale = nearest(quotient(s.product, s.square) * per_unit, least, most);
    }
    gain = scale * unit * (2 * s.product - scale * unit * s.square);
    for (int k = 0; k < kLanes; k++) {
      out.scale[first + k] = int(scale[k]);
      product += scale[k] * s.product[k], square += scale[k] * scale[k] * s.square[k], out.gain += gain[k];
    }
    for (int i = 0; i < N; i++)
      for (int k = 0; k < kLanes; k++) out.level[N * (first + k) + i] = int8_t(levels[i][k]);
  }
  next_unit = quotient(product, square);
}

// `least`, `most`: of the scales. The scale of largest magnitude becomes `least`, or -most where scales of
// the other sign are as large.
template <class Levels, int N, int count>
ScaledBlock<N> encode_scaled(const BlockInput<256>& in, float least, float most,
                             const float (&factors)[count]) {
  ScaledBlock<N> best;
  if (in.size == 0) return best;
  const BlockGroups<N> all_groups(in);
  float fitted[256 / N], lowest = 0, highest = 0;
  for (int first = 0; first < 256 / N; first += kLanes) {
    const Lanes scale = best_scales<Levels>(all_groups.run[first / kLanes], factors);
    for (int k = 0; k < kLanes; k++) {
      fitted[first + k] = scale[k];
      if (scale[k] < lowest) lowest = scale[k];
      if (scale[k] > highest) highest = scale[k];
    }
  }
  const float extreme = highest > -lowest ? highest : lowest, other = highest > -lowest ? lowest : highest;
  const auto attempt = [&](float unit) {
    for (int round = 0; round < 2; round++) {
      ScaledBlock<N> b;
      encode_with_unit<Levels>(in, all_groups, fitted, unit, least, most, b, unit);
      if (b.gain > best.gain) best = b;
    }
  };
  attempt(extreme / least);
  if (other / extreme * least > most + 0.5f) attempt(-extreme / most);
  const float energy = energy_of(in);
  if (energy - best.gain < kHeld * energy || is_very_coarse(best.unit)) {
    float error = best.error(in);
    for (float scale = least; scale < 0.25f * least; scale++)
      for (float sign : {1.0f, -1.0f}) {
        ScaledBlock<N> b;
        float next;
        encode_with_unit<Levels>(in, all_groups, fitted, sign * extreme / scale, least, most, b, next);
        if (const float e = b.error(in); e < error) best = b, error = e;
      }
  } else if (is_coarse(best.unit)) {
    const uint16_t unit = best.unit;
    for (const int further : {-1, 1, 2}) {
      ScaledBlock<N> b;
      float next;
      encode_with_unit<Levels>(in, all_groups, fitted, in.unit_of(uint16_t(unit + further)), least, most, b,
                               next);
      if (b.gain > best.gain) best = b;
    }
  }
  return best;
}

// value = unit * scale * code - offset_unit * offset.
template <int N>
struct OffsetBlock {
  static constexpr int groups = 256 / N, runs = groups / kLanes;
  uint16_t unit = 0, offset_unit = 0;
  uint8_t scale[groups] = {}, offset[groups] = {}, code[256] = {};
  float error = 3e38f;
};

// Codes of one group for a scale and an offset.
template <int N>
struct OffsetCodes {
  Lanes scale, offset;  // whole
  Lanes error;
};

// Of the two whole scales and offsets on both sides of the fitted ones, those with the least error. Values of
// one sign need no offset: then any scale may be the best, with smaller codes for larger scales.
template <int N>
OffsetCodes<N> around(const Groups<N>& g, Lanes scale, Lanes offset, float unit, float offset_unit, float top,
                      float most) {
  OffsetCodes<N> best{all(0), all(0), all(3e38f)};
  const Lanes s0 = nearest(scale * quotient(1, unit) - 1.5f, -1, most),
              o0 = nearest(offset * quotient(1, offset_unit) - 1.5f, -1, most);
  const auto consider = [&](Lanes s, Lanes o) {
    const Lanes step = s * unit, low = o * offset_unit, inverse = quotient(all(1), step);
    Lanes error = all(0);
    for (int i = 0; i < N; i++) {
      const Lanes shifted = g.x[i] + low, miss = shifted - nearest(shifted * inverse, 0, top) * step;
      error += g.w[i] * miss * miss;
    }
    const LaneInts better = error < best.error;
    best.error = chosen(better, error, best.error);
    best.scale = chosen(better, s, best.scale), best.offset = chosen(better, o, best.offset);
  };
  if (most < 16 && none(offset > 0)) {
    for (float s = most; s > 0; s--) consider(all(s), all(0));
    return best;
  }
  for (int tried = 0; tried < 16; tried++)
    consider(lower(upper(s0 + float(tried % 4), all(0)), all(most)),
             lower(upper(o0 + float(tried / 4), all(0)), all(most)));
  return best;
}

// The block for these units, which become those that fit its codes best.
template <int N>
OffsetBlock<N> encode_with_units(const BlockInput<256>& in, const BlockGroups<N>& all_groups,
                                 const OffsetFit* fits, float top, float most, float& unit,
                                 float& offset_unit) {
  OffsetBlock<N> out;
  out.unit = in.stored(unit), out.offset_unit = in.stored(offset_unit), out.error = 0;
  float qq = 0, qo = 0, oo = 0, qx = 0, ox = 0;  // sums for the least squares: scale * code, offset, value
  for (int c = 0; c < out.runs; c++) {
    const Groups<N>& g = all_groups.run[c];
    const OffsetCodes<N> b = around(g, fits[c].scale, fits[c].offset, unit, offset_unit, top, most);
    const Lanes low = b.offset * offset_unit, inverse = quotient(all(1), b.scale * unit);
    Lanes weight = all(0), sum = all(0), codes = all(0), squares = all(0), products = all(0);
    for (int i = 0; i < N; i++) {
      const Lanes code = nearest((g.x[i] + low) * inverse, 0, top), weighted = g.w[i] * code;
      weight += g.w[i], sum += g.w[i] * g.x[i];
      codes += weighted, squares += weighted * code, products += weighted * g.x[i];
      for (int k = 0; k < kLanes; k++) out.code[N * (kLanes * c + k) + i] = uint8_t(code[k]);
    }
    for (int k = 0; k < kLanes; k++) {
      const float s = b.scale[k], o = b.offset[k];
      out.scale[kLanes * c + k] = uint8_t(s), out.offset[kLanes * c + k] = uint8_t(o),
                             out.error += b.error[k];
      qq += s * s * squares[k], qo += s * o * codes[k], oo += o * o * weight[k];
      qx += s * products[k], ox += o * sum[k];
    }
  }
  const float determinant = qq * oo - qo * qo;
  if (determinant > 0) {
    unit = (qx * oo - ox * qo) / determinant, offset_unit = (qx * qo - ox * qq) / determinant;
  } else {
    unit = quotient(qx, qq), offset_unit = 0;
  }
  return out;
}

// The unit by whose whole multiples, up to `most`, the groups' values are met with the least cost.
inline float unit_of(const float* values, const float* costs, int groups, float largest, float most) {
  float best = largest / most, least = 3e38f;
  for (float steps = most + 0.5f; steps > 0.85f * most; steps -= 0.1f) {
    const float unit = largest / steps, per_unit = quotient(1, unit);
    float cost = 0;
    for (int g = 0; g < groups; g++) {
      const float miss = values[g] - unit * nearest(values[g] * per_unit, 0, most);
      cost += costs[g] * miss * miss;
    }
    if (cost < least) best = unit, least = cost;
  }
  return best;
}

// Of the units that `most` and smaller whole numbers bring to `value`, those that rounding to a half moves
// least.
inline constexpr int kClosest = 8;
inline void closest_units(const BlockInput<256>& in, float value, int most, float (&units)[kClosest]) {
  float misses[kClosest];
  for (int k = 0; k < kClosest; k++) units[k] = value / float(most), misses[k] = 3e38f;
  for (int divisor = most; 2 * divisor > most; divisor--) {
    float unit = value / float(divisor);
    in.stored(unit);
    float miss = __builtin_fabsf(unit * float(divisor) - value);
    for (int k = 0; k < kClosest; k++)
      if (miss < misses[k]) {
        const float other_unit = units[k], other_miss = misses[k];
        units[k] = unit, misses[k] = miss, unit = other_unit, miss = other_miss;
      }
  }
}

template <int N, int count, int shift_count>
OffsetBlock<N> encode_offset_block(const BlockInput<256>& in, int top, int most, const float (&covers)[count],
                                   const float (&shifts)[shift_count], int rounds) {
  if (in.size == 0) return {};
  const BlockGroups<N> all_groups(in);
  OffsetFit fits[OffsetBlock<N>::runs];
  float scales[256 / N], offsets[256 / N], squares[256 / N], weights[256 / N];
  float scale = 0, offset = 0;  // the largest ones
  for (int c = 0; c < OffsetBlock<N>::runs; c++) {
    fits[c] = best_offsets(all_groups.run[c], top, covers, shifts, rounds, false);
    for (int k = 0; k < kLanes; k++) {
      const int at = kLanes * c + k;
      scales[at] = fits[c].scale[k], squares[at] = fits[c].squares[k];
      offsets[at] = fits[c].offset[k], weights[at] = fits[c].weight[k];
      if (scales[at] > scale) scale = scales[at];
      if (offsets[at] > offset) offset = offsets[at];
    }
  }
  float unit = unit_of(scales, squares, 256 / N, scale, float(most));
  float offset_unit = unit_of(offsets, weights, 256 / N, offset, float(most));
  OffsetBlock<N> best;
  for (int round = 0; round < unit_rounds(most) && unit >= 0 && offset_unit >= 0; round++) {
    const OffsetBlock<N> b =
        encode_with_units(in, all_groups, fits, float(top), float(most), unit, offset_unit);
    if (b.error < best.error) best = b;
  }
  const auto attempt = [&](float tried_unit, float tried_offset) {
    const OffsetBlock<N> b =
        encode_with_units(in, all_groups, fits, float(top), float(most), tried_unit, tried_offset);
    if (b.error < best.error) best = b;
  };
  if (best.error < kHeld * energy_of(in) || is_very_coarse(best.unit) || is_very_coarse(best.offset_unit)) {
    float units[kClosest], offset_units[kClosest];
    closest_units(in, scale, most, units), closest_units(in, offset, most, offset_units);
    for (const float u : units)
      for (const float o : offset_units) attempt(u, o);
  } else if (is_coarse(best.unit) || is_coarse(best.offset_unit)) {
    const uint16_t half = best.unit, offset_half = best.offset_unit;
    for (const int further : {-1, 1}) {
      attempt(in.unit_of(uint16_t(half + further)), in.unit_of(offset_half));
      attempt(in.unit_of(half), in.unit_of(uint16_t(offset_half + further)));
    }
  }
  return best;
}

}  // namespace gimbal::encoding
