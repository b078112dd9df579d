// The numbers of ops and formats are a part of the contract with plugins that exist already.
#include "device/meanings.h"

#include <gtest/gtest.h>

#include <string>

namespace gimbal {
namespace {

// What plugins have been built with. A new op or format is not in the list; one that is may not change.
TEST(Meanings, NumbersAreForEver) {
  std::string ops, formats;
  for (OpKind k : kAllOps)
    if (int(k) <= 14) ops += std::to_string(int(k)) + " " + info(k).name + ", ";
  EXPECT_EQ(
      ops,
      "0 embed, 1 rms_norm, 2 quantize, 3 mat_mul, 4 rope, 5 cache_write, 6 attention, 7 swiglu, 8 add, "
      "9 select_rows, 10 squared_relu_glu, 11 scale, 12 top_k, 13 sort, 14 argsort, ");
  for (DType t : kAllDTypes)
    if (int(t) <= 39) formats += std::to_string(int(t)) + " " + info(t).name + ", ";
  EXPECT_EQ(formats,
            "0 f32, 1 f16, 2 q4_0, 3 q4_1, 4 q5_0, 5 q5_1, 6 q8_0, 7 q8_1, 8 q2_k, 9 q3_k, 10 q4_k, 11 q5_k, "
            "12 q6_k, 13 q8_k, 14 iq2_xxs, 15 iq2_xs, 16 iq3_xxs, 17 iq1_s, 18 iq4_nl, 19 iq3_s, 20 iq2_s, "
            "21 iq4_xs, 22 i8, 23 i16, 24 i32, 25 i64, 26 f64, 27 iq1_m, 28 bf16, 29 tq1_0, 30 tq2_0, "
            "31 i2_s, 32 mxfp4, 33 nvfp4, 34 q1_0, 35 q2_0, 39 i2_s64, 36 a8_32, 37 a8_256, "
            "38 a8_row, ");
}

TEST(Meanings, ANumberThatNothingHasHasNoMeaning) {
  EXPECT_FALSE(is_known(OpKind(kOpNumbers)));
  EXPECT_STREQ(info(OpKind(60000)).name, "no op");
  EXPECT_STREQ(info(DType(255)).name, "no format");
  EXPECT_EQ(count_of(Meanings<3>{{7, 0, 7}}), 2);
}

}  // namespace
}  // namespace gimbal
