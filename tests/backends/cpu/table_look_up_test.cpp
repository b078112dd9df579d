// Products of ternary weights by table look-up (TL1 and TL2 of bitnet.cpp): in every instruction set of this
// CPU, the integer sums are those of plain arithmetic and of the rows that multiply, for odd sizes and for
// the numbers that bring the sums of 16 bits to their limits.
#include <gtest/gtest.h>

#include <random>

#include "discovery/registry.h"
#include "support/cpu_rows.h"
#include "support/ternary_product.h"

namespace gimbal::cpu {
namespace {

using test::TernaryProduct;

constexpr float kWeightScale = 0.0371f, kActivationScale = 0.0113f;

struct LookUpCase {
  const char* name;
  int columns, outputs, rows;
  int8_t (*weight)(uint32_t bits);      // -1, 0, 1
  int8_t (*activation)(uint32_t bits);  // any byte
};
int8_t any_weight(uint32_t bits) { return int8_t(int(bits % 3) - 1); }
int8_t plus(uint32_t) { return 1; }
int8_t minus(uint32_t) { return -1; }
int8_t any_code(uint32_t bits) { return int8_t(bits); }
int8_t largest(uint32_t) { return 127; }
int8_t smallest(uint32_t) { return -128; }

const LookUpCase kLookUps[] = {
    {"one block", 64, 16, 1, any_weight, any_code},
    {"no whole chunk", 192, 17, 3, any_weight, any_code},
    {"one output", 256, 1, 2, any_weight, any_code},
    {"a chunk and a block", 320, 100, 1, any_weight, any_code},
    {"a chunk and two blocks", 384, 48, 5, any_weight, any_code},
    {"more tiles than tables serve", 448, 1100, 2, any_weight, any_code},
    {"the largest activations", 2048, 40, 1, plus, largest},
    {"the smallest activations", 2048, 40, 1, plus, smallest},
    {"the largest activations, subtracted", 2048, 40, 2, minus, largest},
    {"the smallest activations, subtracted", 2048, 40, 1, minus, smallest},
    {"a row of a model", 13824, 33, 1, any_weight, any_code},
};

TernaryProduct product_of(const LookUpCase& c, DType type) {
  std::mt19937 bits(uint32_t(c.columns * 31 + c.outputs));
  std::vector<int8_t> weights(size_t(c.columns) * size_t(c.outputs)),
      activations(size_t(c.columns) * size_t(c.rows));
  for (int8_t& w : weights) w = c.weight(bits());
  for (int8_t& a : activations) a = c.activation(bits());
  return {type, c.columns, weights, activations, kWeightScale, kActivationScale};
}

class TableLookUp : public testing::TestWithParam<DType> {};

TEST_P(TableLookUp, TheSumsAreThoseOfPlainArithmetic) {
  auto opened = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(opened) << opened.error().message;
  const Device& device = *opened->device;
  const test::CpuRows rows(device);
  const std::string multiplied = std::string(".mat_mul.") + info(GetParam()).name;
  int looked_up = 0, others = 0;
  for (const LookUpCase& c : kLookUps) {
    if (c.columns % info(GetParam()).block) continue;
    TernaryProduct p = product_of(c, GetParam());
    for (size_t i = 0; i < rows.size(); i++) {
      const CpuKernel& row = rows[i];
      const std::string name = row.info.name;
      const bool by_tables = name.ends_with(".mat_mul.tl1") || name.ends_with(".mat_mul.tl2");
      if (row.info.needs & ~device.describe().features || (!by_tables && !name.ends_with(multiplied)))
        continue;
      EXPECT_TRUE(has(row.info.in[0].dtypes, GetParam())) << name;
      (by_tables ? looked_up : others)++;
      for (bool one_by_one : {false, true})
        EXPECT_EQ(p.computed(row, one_by_one), p.want) << name << ", " << c.name;
    }
  }
  std::printf("%s: %d products by look-up, %d by multiplication\n", info(GetParam()).name, looked_up, others);
  EXPECT_GT(looked_up, 0);
  EXPECT_GT(others, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, TableLookUp, testing::Values(DType::I2_S, DType::I2_S64),
                         [](const auto& p) { return std::string(gimbal::info(p.param).name); });

// Chosen by name alone: the same device multiplies otherwise, or looks up where that was measured to be
// faster.
TEST(TableLookUpRows, EveryInstructionSetHasBothBelowItsMultiplication) {
  auto opened = open_device({"cpu", 0, true, "threads=1"});
  ASSERT_TRUE(opened) << opened.error().message;
  const Device& device = *opened->device;
  const auto rank_of = [&](const std::string& name) -> int {
    for (size_t i = 0; i < device.kernel_count(); i++)
      if (device.kernel(i).name == name) return device.kernel(i).rank;
    return INT16_MAX;
  };
  int sets = 0;
  for (const char* set : {"baseline", "avx2", "avx512", "neon"}) {
    const std::string prefix = std::string("cpu.") + set + ".mat_mul.";
    if (rank_of(prefix + "i2_s") == INT16_MAX) continue;  // of another processor
    sets++;
    EXPECT_LT(rank_of(prefix + "tl1"), rank_of(prefix + "i2_s")) << set;
    EXPECT_LT(rank_of(prefix + "tl2"), rank_of(prefix + "tl1")) << set;
  }
  EXPECT_GE(sets, 1);
}

}  // namespace
}  // namespace gimbal::cpu
