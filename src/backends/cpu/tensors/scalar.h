// Single numbers with the bits that vectors have.
#pragma once

inline float root(float v) { return square_root(v); }
inline double root(double v) { return __builtin_sqrt(v); }

// a * b + c: rounded once; of f64, product and sum apart, since not every processor has a fused one.
inline float fused(float a, float b, float c) {
  alignas(64) float r[16];
  store(r, fma(splat(a), splat(b), splat(c)));
  return r[0];
}
inline double fused(double a, double b, double c) { return a * b + c; }
