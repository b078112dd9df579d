// Scales of groups with the least weighted error: sum of w (x - scale * level)^2, or with an offset. Each
// search tries inverse scales around the one that just covers the group. For the levels that a candidate
// gives, the best scale follows by least squares; the candidate whose scale removes most of the error wins,
// the first one on ties.
#pragma once
#include <initializer_list>

#include "tensor/encode/lanes.h"

namespace gimbal::encoding {

// Gains that differ by rounding are ties, so values that a block can hold exactly stay exact.
inline constexpr float kClearly = 1.000001f;

// Which inverse scales the encoders of K formats, IQ4_XS and IQ4_NL try for a group: multiples of the one
// that covers the group exactly. Above 1, the extreme value is clipped.
inline constexpr float kFactors6[] = {1.0f, 0.925f, 0.955f, 0.975f, 0.985f, 0.995f, 1.008f, 1.02f};
inline constexpr float kFactors3[] = {1.0f, 0.7f, 0.8f, 0.87f, 0.94f, 1.07f, 1.15f, 1.24f, 1.35f, 1.5f};
inline constexpr float kFactorsNonLinear[] = {1.0f, 0.83f, 0.89f, 0.93f, 0.965f, 1.03f, 1.07f, 1.14f};

// The same with an offset: the steps between the lowest and the highest value that are tried, and where the
// lowest code may lie, as shares of that range.
inline constexpr float kCovers2[] = {3.0f, 2.5f, 3.4f, 3.9f, 4.5f};
inline constexpr float kShifts2[] = {0.0f, 0.09f, 0.18f, 0.27f};
inline constexpr float kCovers4[] = {15.0f, 13.8f, 14.4f, 15.5f, 16.0f, 16.6f};
inline constexpr float kShifts4[] = {0.0f, 0.03f, 0.06f};
inline constexpr float kCovers5[] = {31.0f, 30.0f, 30.5f, 31.6f, 32.3f};
inline constexpr float kShifts5[] = {0.0f, 0.015f, 0.03f};
// Of blocks of 32 with a unit of their own.
inline constexpr float kFactors4[] = {1.0f,  0.80f, 0.84f, 0.88f, 0.91f, 0.94f, 0.96f,
                                      0.98f, 1.02f, 1.04f, 1.06f, 1.09f, 1.13f, 1.18f};
inline constexpr float kFactors5[] = {1.0f,  0.88f,  0.91f, 0.94f, 0.96f, 0.975f, 0.99f,
                                      1.01f, 1.025f, 1.04f, 1.06f, 1.09f, 1.13f};
inline constexpr float kCoversOf4[] = {15.0f, 13.8f, 14.4f, 15.5f, 16.0f, 17.0f, 18.5f};
inline constexpr float kShiftsOf4[] = {0.0f, 0.03f, 0.06f, 0.1f};
inline constexpr float kCoversOf5[] = {31.0f, 30.0f, 30.5f, 31.6f, 32.3f, 34.0f, 37.0f};
inline constexpr float kShiftsOf5[] = {0.0f, 0.015f, 0.03f, 0.05f};
constexpr int kOffsetRoundsOf32 = 2;
// How often units are refined, by the largest scale.
constexpr int unit_rounds(int most) { return most < 16 ? 4 : 2; }

// Whole numbers from `least` to `most`.
template <int least, int most>
struct Whole {
  static constexpr float first = least, last = most;
  static Lanes level(Lanes v) { return nearest(v, first, last); }
};

// Sums of one choice of levels: the best scale is product / square, and removes product^2 / square of the
// error.
struct ScaleSums {
  Lanes product, square;
};
template <class Levels, int N>
ScaleSums sums_of(const Groups<N>& g, Lanes inverse) {
  Lanes product = all(0), square = all(0);
  for (int i = 0; i < N; i++) {
    const Lanes level = Levels::level(g.x[i] * inverse), weighted = g.w[i] * level;
    product += weighted * g.x[i], square += weighted * level;
  }
  return {product, square};
}

// The value of largest magnitude in each group, with its sign.
template <int N>
Lanes extremes_of(const Groups<N>& g) {
  Lanes extreme = all(0);
  for (int i = 0; i < N; i++) extreme = chosen(size_of(g.x[i]) > size_of(extreme), g.x[i], extreme);
  return extreme;
}

// `factors`: the candidates, as multiples of the inverse scale that brings the extreme value to the first
// level, and to the last one.
template <class Levels, int N, int count>
Lanes best_scales(const Groups<N>& g, const float (&factors)[count]) {
  const Lanes per_extreme = quotient(all(1), extremes_of(g));
  Lanes best = all(0), scale = all(0);
  for (const float end : {Levels::first, Levels::last})
    for (float factor : factors) {
      const ScaleSums s = sums_of<Levels>(g, per_extreme * (end * factor));
      const Lanes fit = quotient(s.product, s.square), gain = fit * s.product;
      const LaneInts better = gain > best * kClearly;
      best = chosen(better, gain, best), scale = chosen(better, fit, scale);
    }
  return scale;
}

// x is about scale * code - offset, with codes 0 to top. A scale that is off by a little costs `squares`
// times the square of that, an offset `weight` times.
struct OffsetFit {
  Lanes scale, offset;
  Lanes squares = all(0), weight = all(0);
};

template <int N>
struct OffsetSearch {
  const Groups<N>& g;
  float top;
  Lanes weight = all(0), sum = all(0);   // of w and w x
  Lanes best = all(0), enough = all(0);  // a gain beyond which candidates differ by rounding alone
  OffsetFit fit{all(0), all(0)};

  OffsetSearch(const Groups<N>& groups, int largest_code) : g(groups), top(float(largest_code)) {
    for (int i = 0; i < N; i++) {
      const Lanes weighted = g.w[i] * g.x[i];
      weight += g.w[i], sum += weighted, enough += weighted * g.x[i];
    }
    enough *= 1 - 4e-6f;
  }

  // Tries the codes of this inverse scale and lowest value: keeps those that reduce the error most.
  void consider(Lanes inverse, Lanes lowest, bool any_offset) {
    Lanes codes = all(0), squares = all(0), products = all(0);
    for (int i = 0; i < N; i++) {
      const Lanes code = nearest((g.x[i] - lowest) * inverse, 0, top), weighted = g.w[i] * code;
      codes += weighted, squares += weighted * code, products += weighted * g.x[i];
    }
    const Lanes determinant = weight * squares - codes * codes;
    const LaneInts solvable = determinant > 1e-6f * (weight * squares);  // more than rounding
    Lanes scale = quotient(weight * products - sum * codes, determinant);
    Lanes low = quotient(squares * sum - codes * products, determinant);
    const LaneInts plain = any_offset ? ~solvable : ~solvable | LaneInts(low > 0);
    scale = chosen(plain, quotient(products, squares), scale), low = chosen(plain, all(0), low);
    const Lanes gain = scale * products + low * sum;
    const LaneInts better = LaneInts(gain > best * kClearly) & LaneInts(scale > 0) & LaneInts(best < enough);
    best = chosen(better, gain, best), fit.scale = chosen(better, scale, fit.scale);
    fit.offset = chosen(better, -low, fit.offset);
  }

  // The fit of its own codes, anew in double: where one weight outweighs all others, the sums above cancel.
  void settle(bool any_offset) {
    double codes[kLanes] = {}, squares[kLanes] = {}, products[kLanes] = {}, weights[kLanes] = {},
           sums[kLanes] = {};
    const Lanes inverse = quotient(all(1), fit.scale);
    for (int i = 0; i < N; i++) {
      const Lanes nearest_code = nearest((g.x[i] + fit.offset) * inverse, 0, top);
      for (int k = 0; k < kLanes; k++) {
        const double code = double(nearest_code[k]), w = double(g.w[i][k]), x = double(g.x[i][k]);
        weights[k] += w, sums[k] += w * x;
        codes[k] += w * code, squares[k] += w * code * code, products[k] += w * code * x;
      }
    }
    for (int k = 0; k < kLanes; k++) {
      const double determinant = weights[k] * squares[k] - codes[k] * codes[k];
      fit.squares[k] = float(squares[k]), fit.weight[k] = float(weights[k]);
      if (!(determinant > 1e-12 * weights[k] * squares[k])) continue;
      const double low = (squares[k] * sums[k] - codes[k] * products[k]) / determinant;
      if (low > 0 && !any_offset) continue;
      fit.scale[k] = float((weights[k] * products[k] - sums[k] * codes[k]) / determinant);
      fit.offset[k] = float(-low);
    }
  }
};

// `covers`: the candidates, as numbers of steps between the lowest and the highest value. `rounds`: the best
// one is then refined: codes of the fitted scale and offset, fitted again. `any_offset`: it may be negative.
template <int N, int count, int shift_count>
OffsetFit best_offsets(const Groups<N>& g, int top, const float (&covers)[count],
                       const float (&shifts)[shift_count], int rounds, bool any_offset) {
  Lanes low = g.x[0], high = g.x[0];
  for (int i = 1; i < N; i++) low = lower(g.x[i], low), high = upper(g.x[i], high);
  if (!any_offset) low = lower(low, all(0));
  OffsetSearch<N> search(g, top);
  // A group without a range is its offset.
  search.fit.offset = any_offset ? -quotient(search.sum, search.weight) : upper(-low, all(0));
  search.best = -search.fit.offset * search.sum * chosen(high > low, all(0), all(1));
  const Lanes per_range = quotient(all(1), high - low);
  for (const float shift : shifts)
    for (const float cover : covers)
      search.consider(per_range * cover, low + (high - low) * shift, any_offset);
  // With one value far from the rest, the rest is best served by a single code.
  const Lanes mean = quotient(search.sum, search.weight);
  search.consider(quotient(all(search.top), high - mean), mean, any_offset);
  search.consider(quotient(all(search.top), mean - low), low, any_offset);
  for (int i = 0; i < rounds; i++)
    search.consider(quotient(all(1), search.fit.scale), -search.fit.offset, any_offset);
  search.settle(any_offset);
  return search.fit;
}

}  // namespace gimbal::encoding
