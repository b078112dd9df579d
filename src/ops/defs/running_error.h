// Running error analysis (Wilkinson): a number with a bound of its error, to first order, in units of one
// rounding. References of the tensor library's ops compute with these in the order of the op, so the bound
// follows from its definition.
#pragma once
#include <cmath>
#include <vector>

#include "ops/op.h"

namespace gimbal::ops {

struct Rounded {
  double v = 0, e = 0;
};

// e: of the operands; the result is rounded once.
inline Rounded rounded_once(double v, double e) { return {v, (e > 0 ? e : 0) + std::fabs(v)}; }
inline Rounded operator+(Rounded a, Rounded b) {
  if (a.v == 0 && a.e == 0) return {a.v + b.v, b.e};  // where a sum begins
  return rounded_once(a.v + b.v, a.e + b.e);
}
inline Rounded operator-(Rounded a) { return {-a.v, a.e}; }
inline Rounded operator-(Rounded a, Rounded b) { return a + -b; }
inline Rounded operator*(Rounded a, Rounded b) {
  return rounded_once(a.v * b.v, std::fabs(a.v) * b.e + std::fabs(b.v) * a.e);
}
inline Rounded operator/(Rounded a, Rounded b) {
  const double q = a.v / b.v;
  return rounded_once(q, (a.e + std::fabs(q) * b.e) / std::fabs(b.v));
}
inline Rounded root(Rounded a) {
  const double r = std::sqrt(a.v);
  return rounded_once(r, r > 0 ? a.e / (2 * r) : 0);
}
// a * b + c; `apart`: product and sum are rounded each, as of f64.
inline Rounded fused(Rounded a, Rounded b, Rounded c, bool apart) {
  if (apart) return c + a * b;
  return rounded_once(a.v * b.v + c.v, std::fabs(a.v) * b.e + std::fabs(b.v) * a.e + c.e);
}
// Functions whose error is `ulps` units in the last place: two roundings each.
inline Rounded exponential(Rounded a, double ulps) {
  const double v = std::exp(a.v);
  return {v, v > 0 ? v * a.e + 2 * ulps * v : 0};
}
inline Rounded logarithm(Rounded a, double ulps) {
  const double v = std::log(a.v);
  return {v, a.e / a.v + 2 * ulps * std::fabs(v)};
}

// The results of chunks of kSumChunk numbers, each in 16 lanes and a tree. into(lane, i): lane with number i.
template <class Into, class Join>
std::vector<Rounded> chunks_of(size_t n, Rounded first, Into into, Join join) {
  std::vector<Rounded> chunks;
  for (size_t begin = 0; begin < n; begin += kSumChunk) {
    Rounded lane[16];
    for (Rounded& l : lane) l = first;
    for (size_t i = begin; i < n && i < begin + kSumChunk; i++) {
      Rounded& l = lane[(i - begin) % 16];
      l = into(l, i);
    }
    for (size_t step = 8; step; step /= 2)
      for (size_t i = 0; i < step; i++) lane[i] = join(lane[i], lane[i + step]);
    chunks.push_back(lane[0]);
  }
  return chunks;
}
// The order of additions of the tensor library: the results of chunks by the same rule.
template <class Into, class Join>
Rounded in_lanes(size_t n, Rounded first, Into into, Join join) {
  std::vector<Rounded> chunks = chunks_of(n, first, into, join);
  while (chunks.size() > 1)
    chunks = chunks_of(
        chunks.size(), first, [&](Rounded lane, size_t i) { return join(lane, chunks[i]); }, join);
  return chunks[0];
}
template <class At>
Rounded sum_of(size_t n, At at) {
  const auto add = [](Rounded a, Rounded b) { return a + b; };
  return in_lanes(
      n, Rounded(), [&](Rounded lane, size_t i) { return lane + at(i); }, add);
}
template <class At>
Rounded sum_of_squares(size_t n, bool apart, At at) {
  const auto add = [](Rounded a, Rounded b) { return a + b; };
  return in_lanes(
      n, Rounded(), [&](Rounded lane, size_t i) { return fused(at(i), at(i), lane, apart); }, add);
}

}  // namespace gimbal::ops
