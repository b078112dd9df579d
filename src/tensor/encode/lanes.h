// Vectors of floats for the encoders: a lane is a group of values (or a block), so no sum crosses lanes. The
// order of additions is the order of the values in a group, whatever the width of a vector: the blocks are
// the same on every machine. Only +, -, *, / and comparisons, each rounded on its own.
#pragma once
#include <stdint.h>

namespace gimbal::encoding {

inline constexpr int kLanes = 4;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef int32_t LaneInts __attribute__((vector_size(4 * kLanes)));

static inline Lanes all(float v) { return Lanes{} + v; }
static inline Lanes chosen(LaneInts mask, Lanes a, Lanes b) { return mask ? a : b; }
static inline bool none(LaneInts mask) {
  bool any = false;
  for (int k = 0; k < kLanes; k++) any |= mask[k] != 0;
  return !any;
}
static inline Lanes lower(Lanes a, Lanes b) { return a < b ? a : b; }  // b if a is NaN
static inline Lanes upper(Lanes a, Lanes b) { return a > b ? a : b; }  // b if a is NaN
static inline Lanes size_of(Lanes a) { return Lanes(LaneInts(a) & 0x7fffffff); }

// To the nearest whole number, ties to even, for |a| below 2^22.
static inline Lanes nearest(Lanes a) { return (a + 12582912.0f) - 12582912.0f; }
static inline float nearest(float a) { return (a + 12582912.0f) - 12582912.0f; }
// Clamped first, so that NaN and infinity give a code, too.
static inline Lanes nearest(Lanes a, float least, float most) {
  return nearest(lower(upper(a, all(least)), all(most)));
}
static inline float nearest(float a, float least, float most) {
  const float above = a > least ? a : least;
  return nearest(above < most ? above : most);
}
// a / b, 0 where b is 0.
static inline Lanes quotient(Lanes a, Lanes b) {
  const LaneInts none = b == 0;
  return chosen(none, all(0), a / chosen(none, all(1), b));
}
static inline float quotient(float a, float b) { return b != 0 ? a / b : 0; }

// kLanes groups of N values with their weights.
template <int N>
struct Groups {
  Lanes x[N], w[N];

  // Group g begins at values + N * g.
  void load(const float* values, const float* weights) {
    for (int i = 0; i < N; i++)
      for (int g = 0; g < kLanes; g++) x[i][g] = values[N * g + i], w[i][g] = weights[N * g + i];
  }
};

}  // namespace gimbal::encoding
