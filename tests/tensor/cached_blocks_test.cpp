// The blocks of KV caches (tensor/block_encode.h): the bytes of the encoders that golden data judge, and for
// IQ4_NL, whose cached blocks no file has, its formula in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tensor/block_encode.h"
#include "tensor/made_up_rows.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

namespace gimbal {
namespace {

TEST(CachedBlocks, AreThoseOfTheReferenceQuantizer) {
  for (const DType type : {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0})
    for (const test::MadeUpRows& rows : test::made_up_rows())
      for (size_t i = 0; i + 32 <= rows.values.size(); i += 32) {
        uint8_t cached[kMostBlockBytes] = {}, golden[kMostBlockBytes] = {};
        encode_cached(type, &rows.values[i], cached);
        encode(type, &rows.values[i], 32, golden);
        ASSERT_EQ(std::memcmp(cached, golden, info(type).bytes), 0)
            << info(type).name << " " << rows.name << " block " << i / 32;
      }
}

// The levels: kvalues_iq4nl of ggml.
constexpr double kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

struct Iq4Nl {
  int code[32];
  double step;
  explicit Iq4Nl(const float* x) {
    double extreme = 0, product = 0, square = 0;
    for (int i = 0; i < 32; i++)
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    for (int i = 0; i < 32; i++) {
      const double share = x[i] / (extreme / kLevels[0]);
      code[i] = 0;
      for (int l = 1; l < 16; l++)
        if (std::fabs(share - kLevels[l]) <= std::fabs(share - kLevels[code[i]])) code[i] = l;
      const double level = kLevels[code[i]], weight = double(x[i]) * x[i];
      product += weight * x[i] * level, square += weight * level * level;
    }
    step = product / square;
  }
};

TEST(CachedBlocks, OfNonLinearLevelsFollowTheFormula) {
  int blocks = 0;
  for (const test::MadeUpRows& rows : test::made_up_rows())
    for (size_t i = 0; i + 32 <= rows.values.size(); i += 32, blocks++) {
      const float* x = &rows.values[i];
      uint8_t block[kMostBlockBytes];
      encode_cached(DType::IQ4_NL, x, block);
      const Iq4Nl want(x);
      uint16_t half = 0;
      std::memcpy(&half, block, 2);
      if (std::isnan(want.step)) continue;  // of zeros
      // Half a unit of the f16, also of the smallest ones, and some roundings of f32.
      EXPECT_NEAR(half_to_float(half), want.step, std::fabs(want.step) * (0x1p-11 + 0x1p-18) + 0x1p-25)
          << rows.name;
      for (int j = 0; j < 32; j++) {
        const int code = block[2 + j % 16] >> (4 * (j / 16)) & 15;
        ASSERT_EQ(code, want.code[j]) << rows.name << " block " << i / 32 << " value " << j;
      }
    }
  EXPECT_GT(blocks, 500);
}

TEST(CachedBlocks, OfZerosAndOfTheSmallestNumbersAreZeros) {
  for (const DType type : {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL})
    for (const float v : {0.0f, -0.0f, 1e-45f, -1e-40f, 1e-38f}) {
      float x[32], y[32];
      for (float& each : x) each = v;
      uint8_t block[kMostBlockBytes];
      encode_cached(type, x, block);
      decode(type, block, 32, y);
      for (const float each : y) EXPECT_EQ(each, 0) << info(type).name << " " << v;
    }
}

TEST(CachedBlocks, ShowWhatIsNotFinite) {
  for (const DType type : {DType::Q8_0, DType::Q5_0, DType::Q4_1, DType::Q4_0, DType::IQ4_NL})
    for (const float odd : {NAN, INFINITY, -INFINITY}) {
      float x[32], y[32];
      for (int i = 0; i < 32; i++) x[i] = i == 19 ? odd : float(i) - 12;
      uint8_t block[kMostBlockBytes];
      encode_cached(type, x, block);
      decode(type, block, 32, y);
      for (const float each : y) EXPECT_TRUE(std::isnan(each)) << info(type).name << " " << odd;
    }
}

}  // namespace
}  // namespace gimbal
