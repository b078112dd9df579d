#include "backends/cpu/pack.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/layout.h"
#include "tensor/quant/values.h"

namespace gimbal::cpu {
namespace {

void pack_columns(int64_t bytes, int64_t columns, const uint8_t* row, uint8_t* tile, int lane) {
  for (int64_t k = 0; k < columns; k++)
    std::memcpy(tile + (16 * k + lane) * bytes, row + k * bytes, size_t(bytes));
}

// Writes column k's byte of a plane: vector k / 4, row `lane`.
inline uint8_t& plane_byte(uint8_t* plane, int lane, int k) { return plane[64 * (k / 4) + 4 * lane + k % 4]; }

// `count` codes to planes; each plane takes the bits that its place in the code says.
void put_nibbles(const uint8_t* code, int count, uint8_t* plane, int lane) {
  for (int k = 0; k < count / 2; k++)
    plane_byte(plane, lane, k) = uint8_t((code[k] & 15) | code[k + count / 2] << 4);
}
void put_pairs(const uint8_t* code, int from, uint8_t* plane, int lane) {
  for (int k = 0; k < 64; k++) {
    auto bits = [&](int i) { return (code[k + 64 * i] >> from & 3) << 2 * i; };
    plane_byte(plane, lane, k) = uint8_t(bits(0) | bits(1) | bits(2) | bits(3));
  }
}
void put_bits(const uint8_t* code, int count, int from, uint8_t* plane, int lane) {
  for (int k = 0; k < count / 8; k++) {
    int byte = 0;
    for (int i = 0; i < 8; i++) byte |= (code[k + count / 8 * i] >> from & 1) << i;
    plane_byte(plane, lane, k) = uint8_t(byte);
  }
}

// ---- blocks of 32: the code of a value, and where the scale (and minimum) lies
// ---------------------------------
template <class Code, class Scales>
void pack32(DType type, int64_t columns, const uint8_t* row, uint8_t* tile, int lane, Code code,
            Scales put_scales) {
  const Parts32 parts = parts32(type);
  for (int64_t left = columns / 32; left > 0; left -= kChunk / 32) {
    const int64_t blocks = std::min<int64_t>(left, kChunk / 32);
    uint8_t* codes = tile + chunk_codes(type, blocks);
    for (int64_t b = 0; b < blocks; b++, row += info(type).bytes, codes += parts.codes) {
      put_scales(row, tile + parts.scales * b + 2 * lane);
      uint8_t c[32];
      for (uint32_t j = 0; j < 32; j++) c[j] = uint8_t(code(row, j));
      if (parts.codes == 512) {
        for (int k = 0; k < 32; k++) plane_byte(codes, lane, k) = c[k];
      } else {
        put_nibbles(c, 32, codes, lane);
        if (parts.codes > 256) put_bits(c, 32, 4, codes + 256, lane);
      }
    }
    tile += chunk_bytes(type, blocks);
  }
}

void one_scale(const uint8_t* block, uint8_t* to) { std::memcpy(to, block, 2); }
void scale_and_minimum(const uint8_t* block, uint8_t* to) {
  std::memcpy(to, block, 2), std::memcpy(to + 32, block + 2, 2);
}
void power_of_two(const uint8_t* block, uint8_t* to) {
  const uint16_t bits = float_to_bf16(mxfp4_scale(block));
  std::memcpy(to, &bits, 2);
}

// ---- blocks of 256: unit and its minimums' unit (byte offsets, -1: none), scales, minimums, codes
// -------------------
template <class Code, class Scale, class Minimum>
void pack256(DType type, int64_t columns, const uint8_t* row, uint8_t* tile, int lane, int unit,
             int minimum_unit, Code code, Scale scale, Minimum minimum) {
  const Parts256 p = parts256(type);
  for (int64_t b = 0; b < columns / 256; b++, row += info(type).bytes, tile += p.end) {
    std::memcpy(tile + 2 * lane, row + unit, 2);
    if (minimum_unit >= 0) std::memcpy(tile + 32 + 2 * lane, row + minimum_unit, 2);
    for (int g = 0; p.scales + 16 * g < p.minimums; g++)
      tile[p.scales + 16 * g + lane] = uint8_t(scale(row, uint32_t(g)));
    for (int g = 0; p.minimums + 16 * g < p.nibbles; g++)
      tile[p.minimums + 16 * g + lane] = uint8_t(minimum(row, uint32_t(g)));
    uint8_t c[256];
    for (uint32_t g = 0; g < 8; g++)
      for (uint32_t j = 0; j < 32; j++) c[32 * g + j] = uint8_t(code(row, 32 * g + j));
    const bool nibbles = p.pairs > p.nibbles, pairs = p.bits > p.pairs;
    if (nibbles) put_nibbles(c, 256, tile + p.nibbles, lane);
    if (pairs) put_pairs(c, nibbles ? 4 : 0, tile + p.pairs, lane);
    if (p.end > p.bits) put_bits(c, 256, nibbles ? 4 : 2, tile + p.bits, lane);
  }
}

uint32_t none(const uint8_t*, uint32_t) { return 0; }

void pack_row(DType t, int64_t columns, const uint8_t* row, uint8_t* tile, int lane) {
  // Captureless lambdas keep the code functions inlined into the loops.
#define CODE(format) [](const uint8_t* b, uint32_t j) { return format##_code(b, j); }
#define GROUP(expression) [](const uint8_t* b, uint32_t g) { return expression; }
  switch (t) {
    case DType::Q8_0: return pack32(t, columns, row, tile, lane, GROUP(uint32_t(b[2 + g] ^ 0x80)), one_scale);
    case DType::Q4_0: return pack32(t, columns, row, tile, lane, CODE(q4_0), one_scale);
    case DType::Q4_1: return pack32(t, columns, row, tile, lane, CODE(q4_1), scale_and_minimum);
    case DType::Q5_0: return pack32(t, columns, row, tile, lane, CODE(q5_0), one_scale);
    case DType::Q5_1: return pack32(t, columns, row, tile, lane, CODE(q5_1), scale_and_minimum);
    case DType::IQ4_NL: return pack32(t, columns, row, tile, lane, CODE(iq4_nl), one_scale);
    case DType::MXFP4: return pack32(t, columns, row, tile, lane, CODE(mxfp4), power_of_two);
    case DType::Q2_K:
      return pack256(t, columns, row, tile, lane, 80, 82, CODE(q2_k), GROUP(uint32_t(b[g])), none);
    case DType::Q3_K:
      return pack256(t, columns, row, tile, lane, 108, -1, CODE(q3_k), GROUP(q3_k_scale(b, g)), none);
    case DType::Q4_K:
      return pack256(t, columns, row, tile, lane, 0, 2, CODE(q4_k), GROUP(k_scale(b, g)),
                     GROUP(k_offset(b, g)));
    case DType::Q5_K:
      return pack256(t, columns, row, tile, lane, 0, 2, CODE(q5_k), GROUP(k_scale(b, g)),
                     GROUP(k_offset(b, g)));
    case DType::Q6_K:
      return pack256(t, columns, row, tile, lane, 208, -1, CODE(q6_k), GROUP(uint32_t(b[192 + g])), none);
    case DType::IQ4_XS:
      return pack256(t, columns, row, tile, lane, 0, -1, CODE(iq4_xs), GROUP(iq4_xs_scale(b, g)), none);
    case DType::TQ1_0: return pack256(t, columns, row, tile, lane, 52, -1, CODE(tq1_0), none, none);
    case DType::TQ2_0: return pack256(t, columns, row, tile, lane, 64, -1, CODE(tq2_0), none, none);
    default: return pack_columns(info(t).bytes, columns, row, tile, lane);
  }
#undef CODE
#undef GROUP
}

}  // namespace

void pack(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* packed, int64_t begin,
          int64_t end) {
  const int64_t row_size = row_bytes(type, columns), tile_size = tile_bytes(type, columns);
  for (int64_t r = begin; r < std::min(end, rows); r++)
    pack_row(type, columns, source + r * row_size, packed + r / kTileRows * tile_size, int(r % kTileRows));
}

}  // namespace gimbal::cpu
