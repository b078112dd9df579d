// Where buffers are cut that are larger than an allocation: never through a value, but for the tiles of
// packed matrices.
#include "gpu/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "packing/layout.h"

namespace gimbal::gpu {
namespace {

gimbal_value value(uint32_t slot, uint64_t offset, uint64_t bytes) {
  gimbal_value v{};
  v.slot = slot, v.offset = offset, v.bytes = bytes, v.dtype = uint8_t(DType::F32), v.rank = 1;
  v.dim[0] = int32_t(bytes / 4), v.dim[1] = v.dim[2] = v.dim[3] = 1;
  return v;
}

std::vector<uint64_t> cuts(const std::vector<gimbal_value>& values, uint64_t most, uint32_t slot = 0) {
  const gimbal_program p{values.data(), values.size(), nullptr, 0};
  Cuts c;
  const Failure f = Cuts::find(p, most, &c);
  EXPECT_FALSE(f) << f.text;
  return slot < c.slots().size() ? c.slots()[slot].where : std::vector<uint64_t>();
}

using List = std::vector<uint64_t>;

TEST(Cuts, ComeBetweenValues) {
  EXPECT_EQ(cuts({value(0, 0, 4096)}, 4096), List{});
  EXPECT_EQ(cuts({value(0, 0, 3000), value(0, 3008, 3000), value(0, 6016, 3000)}, 4096), (List{3008, 6016}));
  // Two fit, the third does not; another slot does not matter.
  EXPECT_EQ(cuts({value(0, 0, 2048), value(0, 2048, 2048), value(1, 0, 64), value(0, 4096, 64)}, 4096),
            List{4096});
  EXPECT_EQ(cuts({value(0, 0, 64), value(2, 0, 3000), value(2, 3072, 3000)}, 4096, 2), List{3072});
}

// No value has the bytes between two others: a piece may end there.
TEST(Cuts, FindTheGapsBetweenValues) {
  EXPECT_EQ(cuts({value(0, 0, 4000), value(0, 4160, 3000)}, 4096), List{4000});
  EXPECT_EQ(cuts({value(0, 0, 64), value(0, 128, 3904), value(0, 4160, 3000)}, 4096), List{4032});
}

// A piece begins at a multiple of 256 before its first byte, and that counts.
TEST(Cuts, LeaveRoomForTheAlignment) {
  EXPECT_EQ(cuts({value(0, 0, 192), value(0, 192, 4096)}, 4352), List{});
  EXPECT_EQ(cuts({value(0, 0, 448), value(0, 448, 3904)}, 4096), List{448});
  const std::vector<gimbal_value> values = {value(0, 0, 448), value(0, 448, 3968)};
  Cuts c;
  EXPECT_TRUE(Cuts::find({values.data(), values.size(), nullptr, 0}, 4096, &c))
      << "448 is 192 behind a multiple of 256";
}

TEST(Cuts, TakeValuesThatShareMemoryForOne) {
  EXPECT_EQ(cuts({value(0, 1000, 2000), value(0, 0, 1500), value(0, 3008, 2000)}, 4096), List{3008});
  const std::vector<gimbal_value> chain = {value(0, 0, 3000), value(0, 2000, 3000)};
  Cuts c;
  const Failure f = Cuts::find({chain.data(), chain.size(), nullptr, 0}, 4096, &c);
  EXPECT_EQ(f.code, Failure::Unsupported);
  EXPECT_NE(f.text.find("4096"), std::string::npos) << f.text;
}

TEST(Cuts, PassBetweenTheTilesOfAPackedMatrix) {
  gimbal_value m = value(0, 0, 0);
  m.dtype = uint8_t(DType::Q4_0), m.layout = GIMBAL_PACKED, m.rank = 2, m.dim[0] = 64, m.dim[1] = 16 * 40;
  const auto tile = uint64_t(packing::tile_bytes(DType::Q4_0, 64));
  m.bytes = 40 * tile, m.offset = 320;
  const auto where = cuts({value(0, 0, 320), m, value(0, 320 + m.bytes, 64)}, 4096);
  ASSERT_GE(where.size(), 4u);
  uint64_t base = 0;
  for (uint64_t at : where) {
    EXPECT_EQ((at - 320) % tile, 0u) << at;
    EXPECT_LE(at, base + 4096);
    EXPECT_GT(at + tile, base + 4096) << "a piece is as full as tiles allow";
    base = at / 256 * 256;
  }
  // The same matrix twice, as tied weights are, may be cut as well; with another value over it it may not.
  EXPECT_EQ(cuts({value(0, 0, 320), m, m, value(0, 320 + m.bytes, 64)}, 4096), where);
  const std::vector<gimbal_value> over = {m, value(0, 640, 64)};
  Cuts c;
  EXPECT_TRUE(Cuts::find({over.data(), over.size(), nullptr, 0}, 4096, &c));
}

TEST(Cuts, AreFoundBehindAByte) {
  const std::vector<gimbal_value> values = {value(0, 0, 3000), value(0, 3008, 3000), value(0, 6016, 3000)};
  Cuts c;
  ASSERT_FALSE(Cuts::find({values.data(), values.size(), nullptr, 0}, 4096, &c));
  EXPECT_EQ(c.behind(0, 0), 3008u);
  EXPECT_EQ(c.behind(0, 3007), 3008u);
  EXPECT_EQ(c.behind(0, 3008), 6016u);
  EXPECT_EQ(c.behind(0, 6016), UINT64_MAX);
  EXPECT_EQ(c.behind(7, 0), UINT64_MAX);
  EXPECT_EQ(blind_cuts(10000, 4096), (List{4096, 8192}));
  EXPECT_EQ(blind_cuts(8192, 4100), List{4096});
}

}  // namespace
}  // namespace gimbal::gpu
