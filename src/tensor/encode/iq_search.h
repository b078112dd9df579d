// The search of the codebook formats. A group of 16 or 32 values has a whole odd scale; parts of it, of 4 or
// 8 values, are grid points. For a given scale, the point with the least weighted error is sought among the
// neighbours of the values rounded alone. Scales follow by least squares from the points, in turns.
#pragma once
#include <span>

#include "tensor/encode/block_input.h"
#include "tensor/encode/fits.h"
#include "tensor/encode/iq_formats.h"
#include "tensor/encode/lanes.h"

namespace gimbal::encoding {

// The point of a part, and its sums for the scale of the group.
struct Part {
  int point = 0;
  float product = 0, square = 0;
};

template <class Levels>
int rounded_level(const Levels& levels, float v) {
  constexpr int count = sizeof levels.at / sizeof(float);
  int level = 0;
  for (int k = 1; k < count; k++) level += v >= 0.5f * (levels.at[k - 1] + levels.at[k]);
  return level;
}

// 8 values of 3 levels. `scale` is above 0.
inline Part best_part(const Codebook& book, const Levels3& levels, const float* x, const float* w,
                      float scale, float per_scale) {
  float cost[8][3];
  int half[2] = {0, 0};
  for (int i = 7; i >= 0; i--) {
    half[i >> 2] = half[i >> 2] * 3 + rounded_level(levels, x[i] * per_scale);
    for (int k = 0; k < 3; k++) {
      const float miss = x[i] - scale * levels.at[k];
      cost[i][k] = w[i] * miss * miss;
    }
  }
  const uint16_t* near = book.around(half[0], half[1]);
  int best = near[0];
  if (book.low[size_t(best)] != half[0] || book.high[size_t(best)] != half[1]) {
    float pair[4][9], sum[2][81];
    for (int p = 0; p < 4; p++)
      for (int b = 0; b < 3; b++)
        for (int a = 0; a < 3; a++) pair[p][3 * b + a] = cost[2 * p][a] + cost[2 * p + 1][b];
    for (int h = 0; h < 2; h++)
      for (int b = 0; b < 9; b++)
        for (int a = 0; a < 9; a++) sum[h][9 * b + a] = pair[2 * h][a] + pair[2 * h + 1][b];
    float least = 3e38f;
    for (int k = 0; k < book.near; k++) {
      const int point = near[k];
      const float error = sum[0][book.low[size_t(point)]] + sum[1][book.high[size_t(point)]];
      if (error < least) least = error, best = point;
    }
  }
  Part part{best, 0, 0};
  for (int i = 0, low = book.low[size_t(best)], high = book.high[size_t(best)]; i < 8; i++) {
    int& digits = i < 4 ? low : high;
    const float level = levels.at[digits % 3], weighted = w[i] * level;
    digits /= 3;
    part.product += weighted * x[i], part.square += weighted * level;
  }
  return part;
}

// 4 values of 8 levels.
inline Part best_part(const Codebook& book, const Levels8& levels, const float* x, const float* w,
                      float scale, float per_scale) {
  int digit[4];
  for (int i = 0; i < 4; i++) digit[i] = rounded_level(levels, x[i] * per_scale);
  const int half[2] = {digit[0] + 8 * digit[1], digit[2] + 8 * digit[3]};
  const uint16_t* near = book.around(half[0], half[1]);
  int best = near[0];
  if (book.low[size_t(best)] != half[0] || book.high[size_t(best)] != half[1]) {
    float cost[4][8];
    for (int i = 0; i < 4; i++)
      for (int k = 0; k < 8; k++) {
        const float miss = x[i] - scale * levels.at[k];
        cost[i][k] = w[i] * miss * miss;
      }
    float least = 3e38f;
    for (int k = 0; k < book.near; k++) {
      const int point = near[k], low = book.low[size_t(point)], high = book.high[size_t(point)];
      const float error = (cost[0][low & 7] + cost[1][low >> 3]) + (cost[2][high & 7] + cost[3][high >> 3]);
      if (error < least) least = error, best = point;
    }
  }
  Part part{best, 0, 0};
  const int low = book.low[size_t(best)], high = book.high[size_t(best)];
  const int digits[4] = {low & 7, low >> 3, high & 7, high >> 3};
  for (int i = 0; i < 4; i++) {
    const float level = levels.at[digits[i]], weighted = w[i] * level;
    part.product += weighted * x[i], part.square += weighted * level;
  }
  return part;
}

// Points of one group for one scale.
struct Choice {
  float product = 0, square = 0;
  int point[8] = {};
  int shift = 0;  // a bit per part: its levels are the second ones

  // The reduction of the error with this scale.
  float gain(float scale) const { return scale * (2 * product - scale * square); }
};

template <class Levels>
struct GroupSearch {
  const Codebook& book;
  const Levels* const (&levels)[2];
  bool each_part;
  int size;  // values of a group

  Choice with_scale(const float* x, const float* w, float scale) const {
    const float per_scale = quotient(1, scale);
    Choice best;
    for (int option = 0; option < 2 && levels[option]; option++) {
      Choice choice;
      for (int i = 0, p = 0; i < size; i += book.values, p++) {
        const Part part = best_part(book, *levels[option], x + i, w + i, scale, per_scale);
        choice.product += part.product, choice.square += part.square;
        choice.point[p] = part.point, choice.shift |= option << p;
      }
      if (!option || choice.gain(scale) > best.gain(scale)) best = choice;
    }
    return best;
  }

  Choice with_each(const float* x, const float* w, float scale) const {
    const float per_scale = quotient(1, scale);
    Choice choice;
    for (int i = 0, p = 0; i < size; i += book.values, p++) {
      Part best = best_part(book, *levels[0], x + i, w + i, scale, per_scale);
      const Part other = best_part(book, *levels[1], x + i, w + i, scale, per_scale);
      const auto gain = [&](const Part& part) { return scale * (2 * part.product - scale * part.square); };
      if (gain(other) > gain(best)) best = other, choice.shift |= 1 << p;
      choice.product += best.product, choice.square += best.square, choice.point[p] = best.point;
    }
    return choice;
  }

  Choice choose(const float* x, const float* w, float scale) const {
    return each_part ? with_each(x, w, scale) : with_scale(x, w, scale);
  }

  // The scale before there is a unit, by least squares from the first ones.
  float best_scale(const float* x, const float* w, float rough, const FirstScales& first) const {
    float best = 0, best_gain = 0;
    const auto consider = [&](float scale) {
      const Choice c = choose(x, w, scale);
      if (!(c.product > 0)) return scale;
      const float fit = c.product / c.square, gain = fit * c.product;
      if (gain > best_gain * kClearly) best = fit, best_gain = gain;
      return fit;
    };
    for (const float factor : first.of_rough) consider(rough * factor);
    if (first.of_covering.empty()) return best;
    float largest = 0;
    for (int i = 0; i < size; i++)
      if (__builtin_fabsf(x[i]) > largest) largest = __builtin_fabsf(x[i]);
    const float covering = largest / levels[0]->at[sizeof levels[0]->at / sizeof(float) - 1];
    for (const float factor : first.of_covering) consider(consider(covering * factor));
    return best;
  }
};

template <class Levels>
struct LevelsInLanes {
  const Levels& levels;
  Lanes operator()(Lanes v) const {
    constexpr int count = sizeof levels.at / sizeof(float);
    Lanes level = all(levels.at[0]);
    for (int k = 1; k < count; k++) {
      const float middle = 0.5f * (levels.at[k - 1] + levels.at[k]);
      level += Lanes(LaneInts(all(levels.at[k] - levels.at[k - 1])) & LaneInts(v >= middle));
    }
    return level;
  }
};

// The best scales of groups whose values are rounded alone, as if every point were in the codebook.
template <int N, class Levels>
void rough_scales(const float* x, const float* w, const GroupSearch<Levels>& search,
                  std::span<const float> factors, float* scales) {
  const float last = search.levels[0]->at[sizeof search.levels[0]->at / sizeof(float) - 1];
  for (int first = 0; first < 256 / N; first += kLanes) {
    Groups<N> g;
    g.load(x + N * first, w + N * first);
    const Lanes covering = size_of(extremes_of(g)) / last;
    Lanes best = all(0), scale = all(0);
    for (int option = 0; option < 2 && search.levels[option]; option++)
      for (const float factor : factors) {
        const Lanes inverse = quotient(all(1), covering * factor);
        Lanes product = all(0), square = all(0);
        for (int i = 0; i < N; i++) {
          const Lanes level = LevelsInLanes<Levels>{*search.levels[option]}(g.x[i] * inverse);
          const Lanes weighted = g.w[i] * level;
          product += weighted * g.x[i], square += weighted * level;
        }
        const Lanes fit = quotient(product, square), gain = fit * product;
        const LaneInts better = LaneInts(gain > best) & LaneInts(product > 0);
        best = chosen(better, gain, best), scale = chosen(better, fit, scale);
      }
    for (int k = 0; k < kLanes; k++) scales[first + k] = scale[k];
  }
}

// Magnitudes and signs: IQ2 and IQ3 have grid points of magnitudes. Where the signs of 8 values have 7 bits,
// the value that matters least gets the wrong sign; its magnitude is then below 0.
struct Signed {
  float size[256];
  uint8_t signs[32] = {};

  Signed(const BlockInput<256>& in, bool even) {
    for (int part = 0; part < 32; part++) {
      int minus = 0, least = 8 * part;
      for (int j = 8 * part; j < 8 * part + 8; j++) {
        const bool negative = in.x[j] < 0;
        size[j] = negative ? -in.x[j] : in.x[j];
        signs[part] = uint8_t(signs[part] | negative << (j & 7)), minus += negative;
        if (in.w[j] * in.x[j] * in.x[j] < in.w[least] * in.x[least] * in.x[least]) least = j;
      }
      if (even && (minus & 1))
        size[least] = -size[least], signs[part] = uint8_t(signs[part] ^ 1 << (least & 7));
    }
  }
};

// Unit, scales and points of a block.
struct CodedBlock {
  uint16_t unit = 0;
  int scale[16] = {};  // odd
  Choice group[16] = {};

  // Point and levels of a part, counted through the block.
  int point(int part, int parts) const { return group[part / parts].point[part % parts]; }
  int shift(int part, int parts) const { return group[part / parts].shift >> (part % parts) & 1; }
};

template <class Levels>
CodedBlock encode_coded(const BlockInput<256>& in, const float* x, const CodedFormat<Levels>& format) {
  const GroupSearch<Levels> search{format.book(), format.levels, format.each_part, format.size};
  const FirstScales& first = format.first;
  const int most = format.most;
  const float divisor = format.divisor;
  CodedBlock best;
  const int groups = 256 / search.size;
  float fitted[16], largest = 0;
  if (search.size == 16) rough_scales<16>(x, in.w, search, first.rough, fitted);
  else rough_scales<32>(x, in.w, search, first.rough, fitted);
  for (int g = 0; g < groups; g++) {
    fitted[g] = search.best_scale(x + search.size * g, in.w + search.size * g, fitted[g], first);
    if (fitted[g] > largest) largest = fitted[g];
  }
  float unit = largest / float(most), best_gain = -3e38f;
  for (int round = 0; round < 3; round++) {
    CodedBlock b;
    b.unit = in.stored(unit, divisor);
    const float per_unit = quotient(1, unit);
    const auto nearest_scale = [&](float wanted) {
      return 2 * int(nearest((wanted * per_unit - 1) * 0.5f, 0, float((most - 1) / 2))) + 1;
    };
    float product = 0, square = 0, gain = 0;
    for (int g = 0; g < groups; g++) {
      const float* xs = x + search.size * g;
      const float* ws = in.w + search.size * g;
      int scale = nearest_scale(fitted[g]);
      Choice c = search.choose(xs, ws, unit * float(scale));
      const int again = nearest_scale(quotient(c.product, c.square));
      if (again != scale) {
        const Choice other = search.choose(xs, ws, unit * float(again));
        if (other.gain(unit * float(again)) > c.gain(unit * float(scale))) c = other, scale = again;
      }
      b.scale[g] = scale, b.group[g] = c;
      product += float(scale) * c.product, square += float(scale) * float(scale) * c.square;
      gain += c.gain(unit * float(scale));
    }
    if (gain > best_gain) best = b, best_gain = gain;
    unit = quotient(product, square);
    if (!(unit > 0)) break;
  }
  return best;
}

}  // namespace gimbal::encoding
