// half.h against the definitions of the formats in double precision: all 65536 halves, and the rounding of
// floats that lie on, beside and between them.
#include "tensor/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace {

// The value by definition: (-1)^s 2^(e-15) (1 + m/1024), subnormal (-1)^s 2^-14 m/1024.
double half_by_definition(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const double size =
      exponent ? std::ldexp(1 + mantissa / 1024.0, exponent - 15) : std::ldexp(mantissa / 1024.0, -14);
  return half >> 15 ? -size : size;
}

// Nearest half by search among all of them; 65536 stands for infinity, as IEEE 754 rounds.
uint16_t nearest_half(float value) {
  static const std::vector<double> sizes = [] {
    std::vector<double> all;
    for (int h = 0; h < 0x7c00; h++) all.push_back(half_by_definition(uint16_t(h)));
    all.push_back(65536);
    return all;
  }();
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(double(value));
  if (size >= 65536) return sign | 0x7c00;
  const size_t above = std::upper_bound(sizes.begin(), sizes.end(), size) - sizes.begin(), below = above - 1;
  const double down = size - sizes[below], up = sizes[above] - size;
  if (down != up) return uint16_t(sign | (down < up ? below : above));
  return uint16_t(sign | (below % 2 == 0 ? below : above));
}

uint16_t nearest_bf16(float value) {
  const uint16_t below = uint16_t(std::bit_cast<uint32_t>(value) >> 16), above = uint16_t(below + 1);
  auto size = [](uint16_t b) {  // by definition, infinity as the next power of two
    const int exponent = b >> 7 & 255, mantissa = b & 127;
    return exponent ? std::ldexp(1 + mantissa / 128.0, exponent - 127) : std::ldexp(mantissa / 128.0, -126);
  };
  const double down = std::fabs(double(value)) - size(below), up = size(above) - std::fabs(double(value));
  if (down != up) return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }

TEST(Half, EveryHalfHasItsValue) {
  for (uint32_t i = 0; i < 65536; i++) {
    const auto half = uint16_t(i);
    const float value = half_to_float(half);
    if ((half & 0x7c00) != 0x7c00) {
      ASSERT_EQ(double(value), half_by_definition(half)) << i;
      ASSERT_EQ(std::signbit(value), half >> 15 != 0) << i;
      ASSERT_EQ(float_to_half(value), half);
    } else if ((half & 0x3ff) == 0) {
      ASSERT_EQ(value, half >> 15 ? -INFINITY : INFINITY);
      ASSERT_EQ(float_to_half(value), half);
    } else {
      // A NaN becomes quiet and keeps the rest.
      ASSERT_EQ(bits(value), uint32_t(half >> 15) << 31 | 0x7fc00000 | uint32_t(half & 0x1ff) << 13) << i;
      ASSERT_EQ(float_to_half(value), half | 0x200);
    }
  }
}

TEST(Half, RoundsTiesAndTheirNeighbours) {
  for (int h = 0; h <= 0x7bff; h++) {
    const double next = h == 0x7bff ? 65536 : half_by_definition(uint16_t(h + 1));
    const double middle = (half_by_definition(uint16_t(h)) + next) / 2;
    const auto tie = float(middle);
    ASSERT_EQ(double(tie), middle);
    for (float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)}) {
      ASSERT_EQ(float_to_half(value), nearest_half(value)) << value;
      ASSERT_EQ(float_to_half(-value), nearest_half(-value)) << -value;
    }
  }
}

TEST(Half, RoundsMillionsOfFloats) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 4'000'000; i++) {
    uint32_t word = uint32_t(random());
    // Three of four in and just around the range of halves, where something happens.
    if (i % 4) word = (word & 0x807fffff) | uint32_t(100 + random() % 46) << 23;
    const float value = std::bit_cast<float>(word);
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_half(value), nearest_half(value)) << std::hexfloat << value;
  }
}

TEST(Half, NanStaysNan) {
  for (uint32_t payload : {1u, 0x1fffu, 0x2000u, 0x3fffffu, 0x400000u, 0x7fffffu})
    for (uint32_t sign : {0u, 0x80000000u}) {
      const float nan = std::bit_cast<float>(sign | 0x7f800000 | payload);
      const uint16_t half = float_to_half(nan);
      EXPECT_EQ(half >> 10 & 31, 31);
      EXPECT_NE(half & 0x3ff, 0);
      EXPECT_EQ(half >> 15, int(sign >> 31));
      const uint16_t brain = float_to_bf16(nan);
      EXPECT_TRUE(std::isnan(bf16_to_float(brain)));
      EXPECT_EQ(brain >> 15, int(sign >> 31));
    }
}

TEST(Bf16, EveryValueIsTheUpperHalfOfItsFloat) {
  for (uint32_t i = 0; i < 65536; i++) {
    const float value = bf16_to_float(uint16_t(i));
    ASSERT_EQ(bits(value), i << 16);
    if (!std::isnan(value)) { ASSERT_EQ(float_to_bf16(value), i); }
  }
}

TEST(Bf16, RoundsTiesAndMillionsOfFloats) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 4'000'000; i++) {
    uint32_t word = uint32_t(random());
    if (i % 4 == 0) word = (word & 0xffff0000) | (0x7fff + i / 4 % 3);  // the tie and its neighbours
    const float value = std::bit_cast<float>(word);
    if (std::isnan(value)) continue;
    if (std::isinf(value)) {
      ASSERT_EQ(bf16_to_float(float_to_bf16(value)), value);
    } else {
      ASSERT_EQ(float_to_bf16(value), nearest_bf16(value)) << std::hexfloat << value;
    }
  }
  EXPECT_EQ(float_to_bf16(3.4028235e38f), 0x7f80);
}

}  // namespace
