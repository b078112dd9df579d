// What the example kernels must compute, in C++ and double precision, for every target that runs them.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tensor/half.h"

namespace gimbal::gpu {

inline uint32_t bits_of(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float v;
  memcpy(&v, &u, 4);
  return v;
}

// Inputs of every_function, and the 24 words that each lane writes.
struct EveryFunction {
  static constexpr uint32_t kWords = 24;
  std::vector<float> a, b, c;
  std::vector<uint32_t> u;

  explicit EveryFunction(uint32_t n) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> value(-40.f, 40.f);
    for (uint32_t i = 0; i < n; i++) {
      a.push_back(i < 8 ? float(int(i)) - 3.5f : value(random));
      b.push_back(value(random));
      // Every other sum nearly cancels, so that a product rounded on its own shows.
      c.push_back(i % 2 ? value(random) : -(a[i] * b[i]));
      // Halves of all kinds but NaNs, whose bits are not promised.
      uint32_t w = uint32_t(random());
      if ((w & 0x7c00) == 0x7c00) w &= ~0x3ffu;
      if ((w & 0x7c000000) == 0x7c000000) w &= ~0x3ff0000u;
      if (i % 5 == 0) w &= 0x83ff83ff;  // subnormal
      u.push_back(w);
    }
  }

  std::vector<uint32_t> expected(uint32_t i, int32_t start, int32_t rows, int32_t out_rows) const {
    static constexpr int32_t levels[4] = {-127, -1, 5, 113};
    float p = a[i], q = b[i], r = c[i];
    uint32_t w = u[i];
    bool less = p < q;
    // The product of two floats is exact in double; its sum with c is when they nearly cancel, and std::fma
    // is by definition.
    volatile float product = p * q;
    int32_t dot = start;
    for (int k = 0; k < 4; k++)
      dot += int32_t(uint8_t(w >> (8 * k))) * int32_t(int8_t(uint8_t((w ^ 0x80402010u) >> (8 * k))));
    float all = 0;
    for (int k = 0; k < 4; k++) all = all + (p + float(k));
    int32_t low = int32_t(w & 255);
    return {bits_of(std::fma(p, q, r)),
            bits_of(product + r),
            bits_of(float(double(p) / double(q))),
            bits_of(float(std::sqrt(double(std::fabs(p))))),
            bits_of(std::floor(p)),
            bits_of(std::nearbyint(p)),
            bits_of(std::fmax(p, q)),
            bits_of(std::fmin(p, q)),
            (w > 7 ? w : 7) + (w < 1000 ? w : 1000),
            uint32_t((start > low ? start : low) - (start < 3 ? start : 3)),
            less ? w : 12,
            bits_of(less ? p : 1.5f),
            uint32_t(less ? -4 : start),
            uint32_t(dot),
            bits_of(half_to_float(uint16_t(w))),
            bits_of(half_to_float(uint16_t(w >> 16))),
            uint32_t(float_to_half(p)) | uint32_t(float_to_half(q)) << 16,
            bits_of(float(w)),
            bits_of(float(int32_t(w))),
            uint32_t(levels[w & 3]),
            bits_of(all),
            uint32_t(int32_t(std::nearbyint(p))),
            w & 0x3fffffff,
            uint32_t(rows + out_rows)};
  }
};

}  // namespace gimbal::gpu
