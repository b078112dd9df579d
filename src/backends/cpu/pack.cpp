#include "backends/cpu/pack.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/layout.h"

namespace gimbal::cpu {
namespace {

void pack_columns(int64_t bytes, int64_t columns, const uint8_t* row, uint8_t* tile, int lane) {
  for (int64_t k = 0; k < columns; k++)
    std::memcpy(tile + (16 * k + lane) * bytes, row + k * bytes, size_t(bytes));
}

void pack_q8_0(int64_t columns, const uint8_t* row, uint8_t* tile, int lane) {
  for (int64_t left = columns / 32; left > 0; left -= kChunk / 32) {
    const int64_t blocks = std::min<int64_t>(left, kChunk / 32);
    uint8_t* codes = tile + up(blocks * 32, 64);
    for (int64_t b = 0; b < blocks; b++, row += 34, codes += 512) {
      std::memcpy(tile + 32 * b + 2 * lane, row, 2);
      for (int g = 0; g < 8; g++) {
        uint32_t four;
        std::memcpy(&four, row + 2 + 4 * g, 4);
        four ^= 0x80808080u;
        std::memcpy(codes + 64 * g + 4 * lane, &four, 4);
      }
    }
    tile += chunk_bytes(DType::Q8_0, blocks);
  }
}

void pack_q4_0(int64_t columns, const uint8_t* row, uint8_t* tile, int lane) {
  for (int64_t left = columns / 32; left > 0; left -= kChunk / 32) {
    const int64_t blocks = std::min<int64_t>(left, kChunk / 32);
    uint8_t* codes = tile + up(blocks * 32, 64);
    for (int64_t b = 0; b < blocks; b++, row += 18, codes += 256) {
      std::memcpy(tile + 32 * b + 2 * lane, row, 2);
      for (int g = 0; g < 4; g++) std::memcpy(codes + 64 * g + 4 * lane, row + 2 + 4 * g, 4);
    }
    tile += chunk_bytes(DType::Q4_0, blocks);
  }
}

void pack_q6_k(int64_t columns, const uint8_t* row, uint8_t* tile, int lane) {
  for (int64_t b = 0; b < columns / 256; b++, row += 210, tile += kQ6Block) {
    std::memcpy(tile + 2 * lane, row + 208, 2);
    for (int s = 0; s < 16; s++) tile[kQ6Scales + 16 * s + lane] = row[192 + s];
    uint8_t code[256];
    for (int half = 0; half < 2; half++)
      for (int l = 0; l < 32; l++) {
        const uint8_t low = row[64 * half + l], low32 = row[64 * half + 32 + l],
                      high = row[128 + 32 * half + l];
        uint8_t* c = code + 128 * half + l;
        c[0] = uint8_t((low & 15) | (high & 3) << 4);
        c[32] = uint8_t((low32 & 15) | (high >> 2 & 3) << 4);
        c[64] = uint8_t(low >> 4 | (high >> 4 & 3) << 4);
        c[96] = uint8_t(low32 >> 4 | (high >> 6) << 4);
      }
    for (int k = 0; k < 128; k++)
      tile[kQ6Low + 64 * (k / 4) + 4 * lane + k % 4] = uint8_t((code[k] & 15) | (code[k + 128] & 15) << 4);
    for (int k = 0; k < 64; k++)
      tile[kQ6High + 64 * (k / 4) + 4 * lane + k % 4] = uint8_t(
          code[k] >> 4 | (code[k + 64] >> 4) << 2 | (code[k + 128] >> 4) << 4 | (code[k + 192] >> 4) << 6);
  }
}

}  // namespace

void pack(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* packed, int64_t begin,
          int64_t end) {
  const int64_t row_size = row_bytes(type, columns), tile_size = tile_bytes(type, columns);
  for (int64_t r = begin; r < std::min(end, rows); r++) {
    const uint8_t* row = source + r * row_size;
    uint8_t* tile = packed + r / kTileRows * tile_size;
    const int lane = int(r % kTileRows);
    switch (type) {
      case DType::Q8_0: pack_q8_0(columns, row, tile, lane); break;
      case DType::Q4_0: pack_q4_0(columns, row, tile, lane); break;
      case DType::Q6_K: pack_q6_k(columns, row, tile, lane); break;
      default: pack_columns(info(type).bytes, columns, row, tile, lane); break;
    }
  }
}

}  // namespace gimbal::cpu
