// The one predicate of selection: each reason to refuse a row, alone.
#include "device/fit.h"

#include <gtest/gtest.h>

#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal {
namespace {

struct Fit : testing::Test {
  const char* features[3] = {"wings", "wheels", nullptr};
  gimbal_device_info device{};
  gimbal_kernel_info row{};
  gimbal_op op{};
  gimbal_value v[3] = {};  // weight, x, out

  void SetUp() override {
    device.feature_names = features;
    row = {"fake.row",
           uint16_t(OpKind::MatMul),
           0,
           GIMBAL_EXACT,
           GIMBAL_PACKED,
           set_of(DType::Q8_0),
           set_of(DType::A8_32),
           set_of(DType::F32),
           64,
           0,
           16,
           0};
    op.kind = uint16_t(OpKind::MatMul), op.inputs = 2, op.in[0] = 0, op.in[1] = 1, op.out = 2;
    v[0].dtype = uint8_t(DType::Q8_0), v[0].layout = GIMBAL_PACKED, v[0].dim[0] = 128;
    v[1].dtype = uint8_t(DType::A8_32);
    v[2].dtype = uint8_t(DType::F32), v[2].rank = 2, v[2].dim[0] = 32, v[2].dim[1] = 16;
  }
  std::string why(bool fast = false) { return why_not(row, op, v, device, fast).value_or("fits"); }
};

TEST_F(Fit, ARowThatFits) { EXPECT_EQ(why(), "fits"); }

TEST_F(Fit, AnotherOp) {
  row.op = uint16_t(OpKind::Add);
  EXPECT_EQ(why(), "computes add");
  row.op = 999;  // of a plugin newer than this program
  EXPECT_NE(why(), "fits");
}

TEST_F(Fit, MissingFeaturesAreNamed) {
  row.needs = 3;
  EXPECT_NE(why().find("needs wings, wheels"), std::string::npos) << why();
  device.features = 1;
  EXPECT_NE(why().find("needs wheels"), std::string::npos) << why();
  device.features = 7;
  EXPECT_EQ(why(), "fits");
}

TEST_F(Fit, FormatsOfInputsAndOutput) {
  v[0].dtype = uint8_t(DType::Q4_0);
  EXPECT_EQ(why(), "does not take q4_0");
  SetUp(), v[1].dtype = uint8_t(DType::F32);
  EXPECT_EQ(why(), "does not take f32 with it");
  SetUp(), v[2].dtype = uint8_t(DType::F16);
  EXPECT_EQ(why(), "does not give f16");
}

TEST_F(Fit, LayoutsAndLimits) {
  v[0].layout = GIMBAL_DENSE;
  EXPECT_EQ(why(), "takes packed weights only");
  SetUp(), row.layout = GIMBAL_DENSE;
  EXPECT_EQ(why(), "takes another memory layout");
  SetUp(), v[0].dim[0] = 96;
  EXPECT_EQ(why(), "rows must be a multiple of 64 values, these have 96");
  SetUp(), v[2].dim[1] = 17;
  EXPECT_EQ(why(), "computes at most 16 rows at once");
  row.max_rows = 0;
  EXPECT_EQ(why(), "fits");
  row.min_rows = 17;
  EXPECT_EQ(why(), "fits");
  row.min_rows = 18;
  EXPECT_EQ(why(), "serves 18 rows and more, and this has 17");
}

TEST_F(Fit, FastRowsOnlyWhenAllowed) {
  row.numerics = GIMBAL_FAST;
  EXPECT_NE(why().find("exact results were asked for"), std::string::npos) << why();
  EXPECT_EQ(why(true), "fits");
}

}  // namespace
}  // namespace gimbal
