// Packed weights, read back by the words of backends/cpu/layout.h alone, must be the weights: for every
// format, with sizes that fill neither a tile nor a chunk.
#include "backends/cpu/pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/cpu/layout.h"
#include "base/bytes.h"
#include "tensor/half.h"
#include "tensor/quant.h"

namespace gimbal::cpu {
namespace {

// A value out of packed memory. Offsets are worked out here from the text of layout.h, not by its functions.
float packed_value(DType t, int64_t columns, const uint8_t* p, int64_t row, int64_t k) {
  const int64_t tile = row / 16, lane = row % 16;
  // A tile of floats: sixteen values per column, and at its end padding to 64 bytes.
  auto column = [&](int64_t bytes) {
    return p + tile * ((columns * 16 * bytes + 63) / 64 * 64) + (k * 16 + lane) * bytes;
  };
  switch (t) {
    case DType::F32: return read_le<float>(column(4));
    case DType::F16: return half_to_float(read_le<uint16_t>(column(2)));
    case DType::BF16: return bf16_to_float(read_le<uint16_t>(column(2)));
    case DType::Q8_0:
    case DType::Q4_0: {
      const int64_t vectors = t == DType::Q8_0 ? 8 : 4;
      auto chunk_size = [&](int64_t blocks) { return (blocks * 32 + 63) / 64 * 64 + blocks * vectors * 64; };
      const int64_t blocks = columns / 32, chunks = blocks / 8, chunk = k / 256;
      const int64_t tile_size = chunks * chunk_size(8) + (blocks % 8 ? chunk_size(blocks % 8) : 0);
      const uint8_t* c = p + tile * tile_size + chunk * chunk_size(8);
      const int64_t here = chunk < chunks ? 8 : blocks % 8, block = k % 256 / 32, j = k % 32;
      const float scale = half_to_float(read_le<uint16_t>(c + 32 * block + 2 * lane));
      const uint8_t* codes = c + (here * 32 + 63) / 64 * 64 + block * vectors * 64;
      if (t == DType::Q8_0) return scale * float(codes[j / 4 * 64 + lane * 4 + j % 4] - 128);
      const uint8_t byte = codes[j % 16 / 4 * 64 + lane * 4 + j % 4];
      return scale * float((j < 16 ? byte & 15 : byte >> 4) - 8);
    }
    case DType::IQ3_XXS:
    case DType::IQ2_XS: {
      const int64_t group = t == DType::IQ2_XS ? 16 : 32, scales = 256 / group * 16;
      const uint8_t* b = p + (tile * (columns / 256) + k / 256) * (64 + scales + 64 * 64);
      const int64_t j = k % 256;
      const int scale = int8_t(b[64 + j / group * 16 + lane]);
      const int level = b[64 + scales + j / 4 * 64 + lane * 4 + j % 4] - 128;
      return read_le<float>(b + 4 * lane) * float(scale) * float(level);
    }
    case DType::I2_S: {
      const uint8_t* b = p + (tile * (columns / 256) + k / 256) * (64 + 16 * 64);
      const int64_t j = k % 256, v = j / 4;
      const int code = b[64 + v % 16 * 64 + lane * 4 + j % 4] >> (2 * (v / 16)) & 3;
      return float(code - 1) * read_le<float>(b + 4 * lane);
    }
    default: {  // q6_k
      const uint8_t* b = p + (tile * (columns / 256) + k / 256) * (64 + 256 + 32 * 64 + 16 * 64);
      const int64_t j = k % 256, v = j / 4, at = lane * 4 + j % 4;
      const float scale = half_to_float(read_le<uint16_t>(b + 2 * lane));
      const int sub = int8_t(b[64 + j / 16 * 16 + lane]);
      const int low = b[320 + v % 32 * 64 + at], high = b[2368 + v % 16 * 64 + at];
      const int code = (v < 32 ? low & 15 : low >> 4) | (high >> (2 * (v / 16)) & 3) << 4;
      return scale * float(sub) * float(code - 32);
    }
  }
}

// Any bytes are valid blocks, except that halves and floats must not be NaN to be compared.
std::vector<uint8_t> random_blocks(DType t, int64_t blocks, std::mt19937& r) {
  std::vector<uint8_t> bytes(size_t(blocks * info(t).bytes));
  for (uint8_t& b : bytes) b = uint8_t(r());
  for (int64_t i = 0; i < blocks; i++) {
    uint8_t* b = &bytes[size_t(i * info(t).bytes)];
    if (t == DType::F32 || t == DType::BF16) b[info(t).bytes - 1] &= 0xbf;  // no exponent of all ones
    else b[t == DType::Q6_K ? 209 : 1] &= 0xbf;
  }
  if (t == DType::I2_S) {  // the scale of all, and padding
    bytes.insert(bytes.end(), 32, 0);
    const float scale = 0.37f;
    std::memcpy(&bytes[bytes.size() - 32], &scale, 4);
  }
  return bytes;
}

// The columns that packing takes at once, in blocks.
int64_t least_blocks(DType t) { return t == DType::I2_S ? 2 : 1; }

TEST(Pack, ReadsBackAsTheFormatMeans) {
  std::mt19937 r(5);
  for (DType t : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q6_K, DType::IQ2_XS,
                  DType::IQ3_XXS, DType::I2_S})
    for (int units : {1, 2, 7, 8, 9, 17})
      for (int64_t rows : {1, 15, 16, 17, 47}) {
        const int64_t blocks = units * least_blocks(t), columns = blocks * info(t).block;
        const auto dense = random_blocks(t, blocks * rows, r);
        std::vector<float> want(size_t(columns * rows));
        decode_tensor(t, dense.data(), columns * rows, want.data());
        const auto size = size_t(packed_bytes(t, columns, rows));
        ASSERT_GT(size, 0u);
        ASSERT_EQ(size % 64, 0u) << "tiles start at whole vectors";
        constexpr uint8_t kGuard = 0xcd;
        std::vector<uint8_t> packed(size + 64, 0);
        std::fill(packed.begin() + long(size), packed.end(), kGuard);
        // In slices, last one first: slices are packed by different threads in any order.
        for (int64_t begin = (rows - 1) / 16 * 16; begin >= 0; begin -= 16)
          pack(t, columns, rows, dense.data(), packed.data(), begin, begin + 16);
        for (int64_t row = 0; row < rows; row++)
          for (int64_t k = 0; k < columns; k++)
            ASSERT_EQ(packed_value(t, columns, packed.data(), row, k), want[size_t(row * columns + k)])
                << info(t).name << " " << columns << " x " << rows << " at " << k << ", " << row;
        for (size_t i = size; i < packed.size(); i++) ASSERT_EQ(packed[i], kGuard) << info(t).name;
      }
}

TEST(Pack, RowsBeyondTheLastKeepTheirZeros) {
  std::mt19937 r(6);
  for (DType t :
       {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0, DType::Q6_K, DType::IQ2_XS, DType::I2_S}) {
    const int64_t columns = 2 * info(t).block, rows = 3;
    const auto dense = random_blocks(t, 2 * rows, r);
    std::vector<uint8_t> packed(size_t(packed_bytes(t, columns, rows)), 0);
    pack(t, columns, rows, dense.data(), packed.data(), 0, rows);
    for (int64_t row = rows; row < 16; row++)
      for (int64_t k = 0; k < columns; k++)
        ASSERT_EQ(packed_value(t, columns, packed.data(), row, k), 0.f) << info(t).name;
  }
}

TEST(Pack, OtherFormatsHaveNoPackedLayout) {
  for (DType t : {DType::I32, DType::I8, DType::F64, DType::A8_32, DType::A8_256, DType::Q8_K})
    EXPECT_EQ(packed_bytes(t, 512, 32), 0) << info(t).name;
  // Two blocks of I2_S make one of the kernels'; half a one would be written behind the tile.
  EXPECT_EQ(packed_bytes(DType::I2_S, 384, 32), 0);
  EXPECT_GT(packed_bytes(DType::I2_S, 512, 32), 0);
}

}  // namespace
}  // namespace gimbal::cpu
