// The codes and scales of weight formats as kernels read them from packed tiles (packing/layout.h), by the
// facts of tensor/formats.def.
#pragma once

#include "backends/cpu/kernels/matmul.h"

// Codes that name one of 16 levels: the table holds level + Zero.
constexpr int8_t kNonLinear[16] = {
#include "tensor/quant/iq4_nl_levels.def"
};
constexpr int8_t kFloat4[16] = {
#include "tensor/quant/fp4_levels.def"
};
constexpr int8_t kIq2[16] = {8, 25, 43, 0, -8, -25, -43, 0};
constexpr int8_t kIq3[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
constexpr const int8_t* levels_named(Levels levels) {
  return levels == Levels::NonLinear ? kNonLinear
         : levels == Levels::Float4  ? kFloat4
         : levels == Levels::Iq2     ? kIq2
                                     : kIq3;
}
struct LevelTable {
  uint8_t entry[16];
  constexpr LevelTable(Levels levels, int zero) : entry{} {
    for (int i = 0; i < 16; i++) entry[i] = uint8_t(levels_named(levels)[i] + zero);
  }
};
template <Levels L, int Zero>
constexpr LevelTable kLevelTable{L, Zero};

// How codes are multiplied. Those of 8 bits stand for code - 128.
template <DType T>
struct CodesOf {
  static constexpr Format format = format_of(T);
  static constexpr DType type = T, x = format.x;
  static constexpr bool wide = format.most == 255, minimums = format.minimums;
  // The code that products treat as zero, and the one in unpacked codes.
  static constexpr int zero = wide ? kWideZero : format.zero, unpacked_zero = format.zero, most = format.most;
  static inline I step(I acc, Codes c, I a) {
    if constexpr (wide) return dot_wide(acc, c, a);
    else return dot(acc, c, a);
  }
};

struct HalfScale {
  static inline F scale(const uint8_t* p) { return load(reinterpret_cast<const uint16_t*>(p)); }
};
