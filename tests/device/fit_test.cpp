// The one predicate of selection: each reason to refuse a row, alone.
#include "device/fit.h"

#include <gtest/gtest.h>

#include <bit>
#include <span>

#include "base/format.h"
#include "device/backends.h"
#include "device/claims.h"
#include "device/device.h"
#include "device/values.h"

namespace gimbal {
namespace {

struct Fit : testing::Test {
  const char* features[3] = {"wings", "wheels", nullptr};
  gimbal_device_info device{};
  gimbal_kernel_info row{};
  gimbal_op op{};
  gimbal_value v[4] = {};  // weight, x, out, bias
  gimbal_limit limits[2] = {{"columns", GIMBAL_DIM, 0, 0, 64, 0, INT64_MAX},
                            {"rows", GIMBAL_ROWS, GIMBAL_OUTPUT, 0, 0, 0, 16}};

  void SetUp() override {
    device.feature_names = features;
    row = claims("fake.row", OpKind::MatMul, set_of(DType::Q8_0));
    row.in[1] = claim_of(set_of(DType::A8_32));
    row.limits = limits, row.n_limits = 2;
    op = {};
    op.kind = uint16_t(OpKind::MatMul), op.inputs = 2, op.in[0] = 0, op.in[1] = 1;
    op.outputs = 1, op.out[0] = 2, op.in[2] = 3;
    set_shape(v[0], Shape(DType::Q8_0, {128, 32}));
    v[0].layout = GIMBAL_PACKED;
    set_shape(v[1], Shape(DType::A8_32, {128, 16}));
    v[1].layout = GIMBAL_DENSE;
    set_shape(v[2], Shape(DType::F32, {32, 16}));
    v[2].layout = GIMBAL_DENSE;
    set_shape(v[3], Shape(DType::F32, {32}));
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
  EXPECT_EQ(why(), "does not take f32 as input 2");
  SetUp(), v[2].dtype = uint8_t(DType::F16);
  EXPECT_EQ(why(), "does not give f16");
}

// A row of a plugin that was built before attention knew values of another width, caps, and what rows see.
TEST_F(Fit, AnOlderRowOfAttentionRefusesWhatCameLater) {
  const gimbal_operand i32 = claim_of(set_of(DType::I32)), none{};
  row = claims("fake.attention", OpKind::Attention, set_of(DType::F16));
  row.params = GIMBAL_PARAM_F(0) | GIMBAL_PARAM_I(1), row.in[6] = row.in[7] = none;
  gimbal_value values[9] = {};
  const Shape cache(DType::F16, {8, 2, kPagePositions, 3});
  const Shape shapes[9] = {Shape(DType::F32, {8, 4, 2}),
                           cache,
                           cache,
                           Shape(DType::I32, {2}),
                           Shape(DType::I32, {2}),
                           Shape(DType::I32, {3, 1}),
                           Shape(DType::I32, {2, 2}),
                           Shape(DType::F32, {4}),
                           Shape(DType::F32, {8, 4, 2})};
  for (int i = 0; i < 9; i++) {
    set_shape(values[i], shapes[i]);
    values[i].layout = i == 1 || i == 2 ? GIMBAL_CACHE : GIMBAL_DENSE;
  }
  op = {};
  op.kind = uint16_t(OpKind::Attention), op.inputs = 6, op.outputs = 1, op.out[0] = 8;
  for (uint16_t i = 0; i < 8; i++) op.in[i] = i;
  auto words = [&] { return why_not(row, op, values, device, false).value_or("fits"); };
  op.param.f[0] = 0.3, op.param.i[1] = 20;
  EXPECT_EQ(words(), "fits");
  op.param.i[2] = 6;
  EXPECT_NE(words().find("i[2] of attention"), std::string::npos) << words();
  op.param.i[2] = 0, op.param.f[1] = 30;
  EXPECT_NE(words().find("f[1] of attention"), std::string::npos) << words();
  op.param.f[1] = 0, op.param.f[2] = 8;
  EXPECT_NE(words().find("f[2] of attention"), std::string::npos) << words();
  op.param.f[2] = 0, op.inputs = 7;
  EXPECT_NE(words(), "fits") << "the visible ranges";
  row.in[6] = i32;
  EXPECT_EQ(words(), "fits");
  op.inputs = 8;
  EXPECT_NE(words(), "fits") << "sinks";
  // One that knows it has a limit.
  op.inputs = 6, row = claims("fake.attention", OpKind::Attention, set_of(DType::F16));
  EXPECT_EQ(words(), "fits");
  set_shape(values[8], Shape(DType::F32, {kMaxHeadDim + 1, 4, 2}));
  EXPECT_NE(words().find("value_dim"), std::string::npos) << words();
}

TEST_F(Fit, LayoutsAndLimits) {
  v[0].layout = GIMBAL_DENSE;
  EXPECT_EQ(why(), "takes input 1 packed only, but this is dense");
  SetUp(), row.in[0].layout = GIMBAL_DENSE;
  EXPECT_EQ(why(), "takes input 1 dense only, but this is packed");
  SetUp(), v[2].layout = GIMBAL_CACHE;
  EXPECT_EQ(why(), "gives its output dense only, but this is cache");
  SetUp(), v[0].dim[0] = 96;
  EXPECT_EQ(why(), "needs columns to be a multiple of 64, but this op has 96");
  SetUp(), v[2].dim[1] = 17;
  EXPECT_EQ(why(), "needs rows to be 16 or less, but this op has 17");
  limits[1].max = 17;
  EXPECT_EQ(why(), "fits");
  limits[1].min = 17;
  EXPECT_EQ(why(), "fits");
  limits[1].min = 18;
  EXPECT_EQ(why(), "needs rows to be 18 or more, but this op has 17");
}

TEST_F(Fit, EveryKindOfLimit) {
  struct Case {
    gimbal_limit limit;
    const char* why;
  };
  op.param.i[3] = 7, row.params = GIMBAL_PARAM_I(3);
  for (const Case& c :
       {Case{{"n", GIMBAL_DIM, 0, 1, 0, 0, 31}, "needs n to be 31 or less, but this op has 32"},
        {{"n", GIMBAL_RANK, GIMBAL_EVERY_VALUE, 0, 0, 0, 1}, "needs n to be 1 or less, but this op has 2"},
        {{"n", GIMBAL_LARGEST_DIM, GIMBAL_EVERY_VALUE, 0, 0, 0, 127},
         "needs n to be 127 or less, but this op has 128"},
        {{"n", GIMBAL_ROW_VALUES, 1, 0, 0, 129, 1000}, "needs n to be 129 or more, but this op has 128"},
        {{"n", GIMBAL_BYTES, GIMBAL_OUTPUT, 0, 0, 1, 9}, "needs n to be 1 or more, but this op has 0"},
        {{"n", GIMBAL_PARAM, 0, 3, 0, 0, 6}, "needs n to be 6 or less, but this op has 7"},
        {{"n", GIMBAL_PARAM, 0, 16, 0, 0, 6}, "has a limit that this version does not know"},
        {{"n", 99, 0, 0, 0, 0, 6}, "has a limit that this version does not know"},
        {{"n", GIMBAL_DIM, 77, 0, 0, 0, 6}, "has a limit that this version does not know"},
        {{"n", GIMBAL_DIM, 5, 0, 0, 0, 6}, "fits"}}) {  // of an input that the op does not have
    limits[1] = c.limit;
    EXPECT_EQ(why(), c.why);
  }
}

TEST_F(Fit, WhatIsOptionalMustBeClaimed) {
  op.inputs = 3;
  EXPECT_EQ(why(), "fits") << "the bias";
  row.in[2] = {};
  EXPECT_EQ(why(), "does not know an input 3");
  SetUp(), op.param.f[3] = 0.5;
  EXPECT_EQ(why(), "does not know the parameter f[3] of mat_mul");
  row.params = GIMBAL_PARAM_F(3);
  EXPECT_EQ(why(), "fits");
  op.param.i[15] = -1;
  EXPECT_EQ(why(), "does not know the parameter i[15] of mat_mul");
  row.params |= GIMBAL_PARAM_I(15);
  EXPECT_EQ(why(), "fits");
  SetUp(), op.outputs = 2, op.out[1] = 2;
  EXPECT_EQ(why(), "does not know an output 2");
  SetUp(), v[1].layout = GIMBAL_STRIDED;
  EXPECT_EQ(why(), "takes input 2 dense only, but this is strided");
  row.in[1].strided = 1;
  EXPECT_EQ(why(), "fits");
}

TEST_F(Fit, NumbersOfInputsAndOutputsAreBounded) {
  op.outputs = 0;
  EXPECT_EQ(why(), "no kernel has 2 inputs and 0 outputs");
  SetUp(), op.inputs = GIMBAL_MAX_INPUTS + 1;
  EXPECT_EQ(why(), format("no kernel has {} inputs and 1 outputs", GIMBAL_MAX_INPUTS + 1));
  SetUp(), op.outputs = GIMBAL_MAX_OUTPUTS + 1;
  EXPECT_EQ(why(), format("no kernel has 2 inputs and {} outputs", GIMBAL_MAX_OUTPUTS + 1));
}

// The promise to the author of a new feature of an op: no existing kernel claims it by accident.
TEST(EveryRow, RefusesWhatItDoesNotClaim) {
  int rows = 0;
  for (LinkedBackends e = linked_backends(); *e; ++e) {
    auto d = Device::open(*(*e)(), 0);
    if (!d) continue;
    const gimbal_device_info device{};
    for (size_t r = 0; r < (*d)->kernel_count(); r++, rows++) {
      gimbal_kernel_info row = (*d)->kernel(r);
      row.needs = 0;
      // The smallest op that it takes.
      gimbal_op op{};
      gimbal_value v[GIMBAL_MAX_INPUTS + GIMBAL_MAX_OUTPUTS] = {};
      const uint16_t outputs = row.out[1].dtypes ? 2 : 1;
      op.kind = row.op, op.outputs = outputs, op.out[0] = 8, op.out[1] = 9, op.inputs = 0;
      auto fill = [](gimbal_value& value, const gimbal_operand& o) {
        set_shape(value, Shape(DType(std::countr_zero(o.dtypes)), {16, 16, 1}));
        value.layout = o.layout;
      };
      for (uint16_t i = 0; i < GIMBAL_MAX_INPUTS; i++) {
        op.in[i] = i;
        if (row.in[i].dtypes) fill(v[i], row.in[i]), op.inputs++;
        else set_shape(v[i], Shape(DType::F32, {16}));
      }
      fill(v[8], row.out[0]);
      if (outputs > 1) fill(v[9], row.out[1]);
      else set_shape(v[9], Shape(DType::F32, {16}));
      for (const gimbal_limit& l : std::span(row.limits, row.n_limits))
        if (l.what == GIMBAL_ROWS) v[8].dim[2] = std::max<int64_t>(l.min, 1);
      auto fits = [&] { return !misfit(row, op, v, device, true); };
      ASSERT_TRUE(fits()) << row.name << ": " << words(misfit(row, op, v, device, true), row, op, v, device);

      op.inputs++;
      EXPECT_FALSE(fits()) << row.name << " takes an input that it does not know";
      op.inputs--, op.outputs++;
      EXPECT_FALSE(fits()) << row.name << " gives an output that it does not know";
      op.outputs = outputs;
      for (int i = 0; i < 16; i++) {
        if (row.params & GIMBAL_PARAM_I(i)) continue;
        op.param.i[i] = 1;
        EXPECT_FALSE(fits()) << row.name << " takes i[" << i << "]";
        op.param.i[i] = 0;
      }
      for (int i = 0; i < 4; i++) {
        if (row.params & GIMBAL_PARAM_F(i)) continue;
        op.param.f[i] = 0.5;
        EXPECT_FALSE(fits()) << row.name << " takes f[" << i << "]";
        op.param.f[i] = 0;
      }
      for (uint16_t i : {uint16_t(0), uint16_t(8)}) {
        const gimbal_value before = v[i];
        v[i].layout = GIMBAL_STRIDED;
        EXPECT_FALSE(fits()) << row.name << " takes strides";
        v[i] = before, v[i].dim[0] = int64_t(1) << 31;
        EXPECT_FALSE(fits()) << row.name << " takes a size that 32 bits do not hold";
        v[i] = before, v[i].rank = 8;
        EXPECT_FALSE(fits()) << row.name << " takes eight dimensions";
        v[i] = before, v[i].dtype = kDTypeNumbers;
        EXPECT_FALSE(fits()) << row.name << " takes a format that it cannot know";
        v[i] = before;
      }
      if (OpKind(row.op) == OpKind::Attention) {
        v[0].dim[0] = kMaxHeadDim + 1;
        EXPECT_FALSE(fits()) << row.name << " takes a head that is too long";
      }
    }
  }
  EXPECT_GT(rows, 50);
}

TEST_F(Fit, FastRowsOnlyWhenAllowed) {
  row.numerics = GIMBAL_FAST;
  EXPECT_NE(why().find("exact results were requested"), std::string::npos) << why();
  EXPECT_EQ(why(true), "fits");
}

}  // namespace
}  // namespace gimbal
