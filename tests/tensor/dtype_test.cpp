// The table of storage formats against other people's numbers.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "support/golden.h"
#include "tensor/quant.h"
#include "tensor/shape.h"

namespace gimbal {
namespace {

TEST(DType, SizesAndIdsAreThoseOfTheReferenceData) {
  std::set<DType> seen;
  for (const std::string& path : test::golden_files("dequant", ".json")) {
    const auto j = test::read_json(path);
    const std::string name = std::filesystem::path(path).stem();
    auto t = dtype_named(name);
    ASSERT_TRUE(t) << name;
    EXPECT_EQ(info(*t).gguf, j["ggml_type"].get<int>()) << name;
    // The data gives plain formats in groups of 32 values.
    const int group = info(*t).block == 1 ? 32 : 1;
    EXPECT_EQ(info(*t).block * group, j["block_size"].get<int>()) << name;
    EXPECT_EQ(info(*t).bytes * group, j["type_size"].get<int>()) << name;
    EXPECT_EQ(dtype_of_gguf(uint32_t(info(*t).gguf)), t) << name;
    EXPECT_TRUE(can_decode(*t)) << name;
    seen.insert(*t);
  }
  // Formats that files can carry and the reference data does not cover are these, and no others.
  std::string others;
  for (DType t : kAllDTypes)
    if (!seen.count(t)) others += std::string(" ") + info(t).name;
  EXPECT_EQ(
      others,
      " q8_1 q8_k i8 i16 i32 i64 f64 i2_s i2_s64 a8_32 a8_256 a8_row bool u8 u16 u32 u64 f8_e4m3 f8_e5m2");
}

TEST(DType, NamesAndIdsAreUniqueAndFoundInAnyCase) {
  std::set<std::string> names;
  std::set<int> ids;
  for (DType type : kAllDTypes) {
    const DTypeInfo& t = info(type);
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    EXPECT_TRUE(t.gguf == kNotInFiles || ids.insert(t.gguf).second) << t.name;
    EXPECT_EQ(dtype_named(t.name), type);
    std::string upper = t.name;
    for (char& c : upper) c = char(std::toupper(c));
    EXPECT_EQ(dtype_named(upper), type);
  }
  for (const char* wrong : {"", "q4", "q4_00", " q4_0", "f3", "f32 ", "\xff"})
    EXPECT_EQ(dtype_named(wrong), std::nullopt) << wrong;
  for (uint32_t wrong : {4u, 5u, 31u, 33u, 37u, 38u, 43u, uint32_t(kNotInFiles), 0xffffffffu, 65536u})
    EXPECT_EQ(dtype_of_gguf(wrong), std::nullopt) << wrong;
}

TEST(DType, RowsAndSets) {
  EXPECT_EQ(row_bytes(DType::Q4_0, 64), 36);
  EXPECT_EQ(row_bytes(DType::Q6_K, 512), 420);
  EXPECT_EQ(row_bytes(DType::F32, int64_t(1) << 40), int64_t(1) << 42);
  EXPECT_EQ(tensor_tail_bytes(DType::I2_S), 32);
  EXPECT_EQ(tensor_tail_bytes(DType::I2_S64), 32);
  EXPECT_EQ(tensor_tail_bytes(DType::Q8_0), 0);
  const DTypeSet s = set_of(DType::F32, DType::A8_256);
  for (DType t : kAllDTypes) EXPECT_EQ(has(s, t), t == DType::F32 || t == DType::A8_256);
  EXPECT_EQ(set_of(), 0u);
  EXPECT_EQ(to_string(Shape(DType::Q4_0, {2048, 512})), "q4_0[2048, 512]");
  EXPECT_EQ(Shape(DType::Q8_0, {64, 3}).bytes(), 2 * 34 * 3);
}

}  // namespace
}  // namespace gimbal
