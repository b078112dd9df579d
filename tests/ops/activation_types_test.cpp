// The format that activations are quantized to, for each format of weights.
#include <gtest/gtest.h>

#include "ops/op_def.h"

namespace gimbal {
namespace {

TEST(ActivationTypes, FollowTheBlocksOfTheWeights) {
  for (DType t : {DType::F32, DType::F16, DType::BF16}) EXPECT_EQ(activation_type(t), DType::F32);
  for (DType t : {DType::Q8_0, DType::Q4_0, DType::Q5_1, DType::IQ4_NL, DType::MXFP4})
    EXPECT_EQ(activation_type(t), DType::A8_32);
  for (DType t : {DType::Q6_K, DType::Q2_K, DType::IQ1_S, DType::TQ1_0})
    EXPECT_EQ(activation_type(t), DType::A8_256);
  EXPECT_EQ(activation_type(DType::I2_S), DType::A8_ROW);
}

}  // namespace
}  // namespace gimbal
