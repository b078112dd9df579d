// Packed weights, read back by the words of backends/cpu/layout.h alone, must be the weights: for every
// format, with sizes that fill neither a tile nor a chunk.
#include "packing/pack.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <utility>

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
  // Units at the head of the tile, 32 bytes a block, and blocks of so many bytes: those of column k.
  auto of_block = [&](int64_t bytes) {
    const int64_t blocks = columns / 256, head = (32 * blocks + 63) / 64 * 64;
    const uint8_t* begin = p + tile * (head + blocks * bytes);
    return std::pair(begin + 32 * (k / 256), begin + head + bytes * (k / 256));
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
    case DType::IQ2_XS:
    case DType::IQ3_XXS:
    case DType::IQ3_S:
    case DType::IQ1_M: {
      const bool iq1 = t == DType::IQ1_M, iq2 = t == DType::IQ2_XS, iq3_s = t == DType::IQ3_S;
      const int64_t groups = iq1 || iq2 ? 16 : 8, scales = groups / 2 * 16;
      const int64_t codes = (iq1 ? 17 : iq2 ? 16 + 8 : 32) * 64;
      const auto [units, b] = of_block(scales + codes);
      const int64_t j = k % 256, v = j / 4, at = scales + lane * 4 + j % 4, g = j * groups / 256;
      const int two = b[g % (groups / 2) * 16 + lane], odd = 2 * (g < groups / 2 ? two & 15 : two >> 4) + 1;
      const bool pairs = iq1 || iq2;
      const int nibble = pairs ? 0 : b[at + v % 32 * 64] >> (v / 32 * 4) & 15;
      const int pair = pairs ? b[at + v % 16 * 64] >> (v / 16 * 2) & 3 : 0;
      int level = 2 * nibble - 15;  // iq3_s
      if (iq1) level = 8 * (pair - 1) + (b[scales + 1024 + 4 * lane + j % 32 / 8] >> (j / 32) & 1 ? 1 : -1);
      if (iq2)
        level = std::array{8, 25, 43, 0}[size_t(pair)] * (b[at + 1024 + v % 8 * 64] >> (v / 8) & 1 ? -1 : 1);
      if (t == DType::IQ3_XXS) level = (nibble % 8 == 7 ? 62 : 4 + 8 * (nibble % 8)) * (nibble < 8 ? 1 : -1);
      const float factor = pairs ? 0.125f : iq3_s ? 1 : 0.25f;
      return half_to_float(read_le<uint16_t>(units + 2 * lane)) * factor * float(odd) * float(level);
    }
    case DType::TQ2_0: {
      const int64_t j = k % 256, v = j / 4, at = v % 16 * 64 + lane * 4 + j % 4;
      const auto [units, b] = of_block(16 * 64);
      return float((b[at] >> (2 * (v / 16)) & 3) - 1) * half_to_float(read_le<uint16_t>(units + 2 * lane));
    }
    case DType::I2_S: {  // one vector of scales a tile, then two vectors of codes for 32 columns
      const uint8_t* units = p + tile * (64 + columns / 32 * 2 * 64);
      const int64_t j = k % 32, v = j / 4;
      const uint8_t byte = units[64 + (k / 32 * 2 + v % 2) * 64 + lane * 4 + j % 4];
      return float((byte >> (2 * (v / 2)) & 3) - 1) * read_le<float>(units + 4 * lane);
    }
    case DType::Q2_K: {
      const uint8_t* b = p + (tile * (columns / 256) + k / 256) * (64 + 256 + 16 * 64);
      const int64_t j = k % 256, v = j / 4;
      const int two = b[64 + j / 16 * 16 + lane];
      const int code = b[320 + v % 16 * 64 + lane * 4 + j % 4] >> (2 * (v / 16)) & 3;
      return half_to_float(read_le<uint16_t>(b + 2 * lane)) * float(two & 15) * float(code) -
             half_to_float(read_le<uint16_t>(b + 32 + 2 * lane)) * float(two >> 4);
    }
    default: {  // q6_k
      const auto [units, b] = of_block(256 + 32 * 64 + 16 * 64);
      const int64_t j = k % 256, v = j / 4, at = lane * 4 + j % 4;
      const float scale = half_to_float(read_le<uint16_t>(units + 2 * lane));
      const int sub = int8_t(b[j / 16 * 16 + lane]);
      const int low = b[256 + v % 32 * 64 + at], high = b[2304 + v % 16 * 64 + at];
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
    else if (t == DType::Q2_K) b[81] &= 0xbf, b[83] &= 0xbf;
    else b[t == DType::Q6_K ? 209 : t == DType::TQ2_0 ? 65 : t == DType::IQ1_M ? 55 : 1] &= 0xbf;
  }
  if (t == DType::I2_S) {  // the scale of all, and padding
    bytes.insert(bytes.end(), 32, 0);
    const float scale = 0.37f;
    std::memcpy(&bytes[bytes.size() - 32], &scale, 4);
  }
  return bytes;
}

// At most 16 rows from `begin` on, with the tensor's tail behind the last of them.
std::vector<uint8_t> rows_from(DType t, int64_t columns, int64_t rows, const std::vector<uint8_t>& dense,
                               int64_t begin) {
  const int64_t row = row_bytes(t, columns), end = std::min(rows, begin + 16);
  std::vector<uint8_t> some(dense.begin() + row * begin, dense.begin() + row * end);
  some.insert(some.end(), dense.begin() + row * rows, dense.end());
  return some;
}

TEST(Pack, ReadsBackAsTheFormatMeans) {
  std::mt19937 r(5);
  for (DType t : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q2_K, DType::Q6_K,
                  DType::IQ2_XS, DType::IQ3_XXS, DType::IQ3_S, DType::IQ1_M, DType::TQ2_0, DType::I2_S})
    for (int units : {1, 2, 7, 8, 9, 17})
      for (int64_t rows : {1, 15, 16, 17, 47}) {
        const int64_t blocks = units, columns = blocks * info(t).block;
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
          pack(t, columns, rows, rows_from(t, columns, rows, dense, begin).data(), packed.data(), begin,
               begin + 16);
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
  EXPECT_GT(packed_bytes(DType::I2_S, 384, 32), 0);
}

}  // namespace
}  // namespace gimbal::cpu
