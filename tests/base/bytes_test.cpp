// Sizes as hostile files give them, and as people read them.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace gimbal {
namespace {

TEST(Bytes, AreSaidInThreeDigits) {
  struct Case {
    uint64_t n;
    const char* text;
  };
  // The edges are where rounding would give a fourth digit or a thousand of a unit.
  for (const Case& c : {Case{0, "0 B"},
                        {1, "1 B"},
                        {999, "999 B"},
                        {1000, "1.00 kB"},
                        {9994, "9.99 kB"},
                        {9996, "10.0 kB"},
                        {99949, "99.9 kB"},
                        {99951, "100 kB"},
                        {999499, "999 kB"},
                        {999501, "1.00 MB"},
                        {1500000000, "1.50 GB"},
                        {12000000, "12.0 MB"},
                        {4000000000000, "4.00 TB"},
                        {999999999999999, "1.00 PB"},
                        {std::numeric_limits<uint64_t>::max(), "18.4 EB"}})
    EXPECT_EQ(human_bytes(c.n), c.text) << c.n;
}

TEST(Bytes, CheckedArithmeticNoticesTheSixtyFifthBit) {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(checked_add(most - 1, 1), most);
  EXPECT_EQ(checked_add(most, 1), std::nullopt);
  EXPECT_EQ(checked_add(most, most), std::nullopt);
  EXPECT_EQ(checked_mul(most, 1), most);
  EXPECT_EQ(checked_mul(0, most), 0u);
  EXPECT_EQ(checked_mul(1ull << 32, 1ull << 31), 1ull << 63);
  EXPECT_EQ(checked_mul(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(checked_mul(most / 3, 4), std::nullopt);
}

TEST(Bytes, AlignUpRoundsToAnyMultiple) {
  for (uint64_t to : {1, 7, 32, 64, 4096})
    for (uint64_t n : {0, 1, 6, 7, 8, 31, 32, 33, 4095, 4096, 4097}) {
      const uint64_t up = align_up(n, to);
      EXPECT_EQ(up % to, 0u);
      EXPECT_GE(up, n);
      EXPECT_LT(up - n, to);
    }
  EXPECT_TRUE(is_power_of_two(1) && is_power_of_two(64) && is_power_of_two(1ull << 63));
  EXPECT_FALSE(is_power_of_two(0) || is_power_of_two(3) || is_power_of_two(63));
}

TEST(Bytes, ReadsAreLittleEndianAndUnaligned) {
  const unsigned char bytes[] = {0xff, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0x80};
  EXPECT_EQ(read_le<uint32_t>(bytes + 1), 0x12345678u);
  EXPECT_EQ(read_le<int64_t>(bytes + 1), int64_t(0x8000000012345678ull));
  EXPECT_EQ(read_le<int8_t>(bytes), -1);
}

}  // namespace
}  // namespace gimbal
