#include "packing/pack.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "packing/layout.h"
#include "tensor/quant.h"
#include "tensor/quant/values.h"

namespace gimbal::packed {
namespace {

// Everything below lays out one chunk of up to 256 columns of one row: small enough for the sixteen rows of a
// chunk to stay in the first-level cache while they are interleaved.

void pack_columns(int64_t bytes, int64_t columns, const uint8_t* row, uint8_t* chunk, int lane) {
  uint8_t* to = chunk + lane * bytes;
  if (bytes == 2)
    for (int64_t k = 0; k < columns; k++) std::memcpy(to + 32 * k, row + 2 * k, 2);
  else
    for (int64_t k = 0; k < columns; k++) std::memcpy(to + 64 * k, row + 4 * k, 4);
}

// Writes a row's bytes of a plane: byte k goes to vector k / 4, so four at a time.
void scatter(const uint8_t* bytes, int count, uint8_t* plane, int lane) {
  for (int k = 0; k < count; k += 4) std::memcpy(plane + 16 * k + 4 * lane, bytes + k, 4);
}

// Codes to planes; each plane takes the bits that its place in the code says. Shared by the formats.
template <int Count>
[[gnu::noinline]] void put_nibbles(const uint8_t* code, uint8_t* plane, int lane) {
  uint8_t bytes[Count / 2];
  for (int k = 0; k < Count / 2; k++) bytes[k] = uint8_t((code[k] & 15) | code[k + Count / 2] << 4);
  scatter(bytes, Count / 2, plane, lane);
}
template <int From>
[[gnu::noinline]] void put_pairs(const uint8_t* code, uint8_t* plane, int lane) {
  uint8_t bytes[64];
  for (int k = 0; k < 64; k++)
    bytes[k] = uint8_t((code[k] >> From & 3) | (code[k + 64] >> From & 3) << 2 |
                       (code[k + 128] >> From & 3) << 4 | (code[k + 192] >> From & 3) << 6);
  scatter(bytes, 64, plane, lane);
}
template <int Count, int From>
[[gnu::noinline]] void put_bits(const uint8_t* code, uint8_t* plane, int lane) {
  uint32_t bytes[Count / 32] = {};  // four of them in a word
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < Count / 32; k++)
      bytes[k] |= (read_le<uint32_t>(code + Count / 8 * i + 4 * k) >> From & 0x01010101) << i;
  scatter(reinterpret_cast<const uint8_t*>(bytes), Count / 8, plane, lane);
}

// The same for codes whose fifth bits lie in one word: bit 4 i + k becomes bit i of byte k.
void put_fifth_bits(uint32_t bits, uint8_t* plane, int lane) {
  auto exchange = [&](int distance, uint32_t lower) {  // the bits of `lower` with those so far above them
    const uint32_t differ = (bits ^ bits >> distance) & lower;
    bits ^= differ ^ differ << distance;
  };
  exchange(14, 0x0000cccc), exchange(7, 0x00aa00aa), exchange(2, 0x0c0c0c0c), exchange(1, 0x22222222);
  scatter(reinterpret_cast<const uint8_t*>(&bits), 4, plane, lane);
}

// The codes of a block, in runs of 16 whose number the compiler knows: then what depends on the run alone
// (shifts, offsets) is constant, and the loop over it becomes a vector.
template <class Code, size_t... R>
void all_codes(const uint8_t* block, uint8_t* out, Code code, std::index_sequence<R...>) {
  auto run = [&](auto r) {
    for (uint32_t i = 0; i < 16; i++) out[16 * r + i] = uint8_t(code(block, 16 * uint32_t(r) + i));
  };
  (run(std::integral_constant<size_t, R>{}), ...);
}

// ---- blocks of 32: the code of a value (its low nibble where fifth bits follow the scales), and where the
// scale (and minimum) lies
template <DType T, class Code, class Scales>
void pack32(int64_t columns, const uint8_t* row, uint8_t* chunk, int lane, Code code, Scales put_scales) {
  constexpr Parts32 parts = parts32(T);
  const int64_t blocks = columns / 32;
  uint8_t* codes = chunk + chunk_codes(T, blocks);
  for (int64_t b = 0; b < blocks; b++, row += info(T).bytes, codes += parts.codes) {
    put_scales(row, chunk + parts.scales * b + 2 * lane);
    uint8_t c[32];
    all_codes(row, c, code, std::make_index_sequence<2>());
    if constexpr (parts.codes == 512) scatter(c, 32, codes, lane);
    else put_nibbles<32>(c, codes, lane);
    if constexpr (parts.codes == 320)
      put_fifth_bits(read_le<uint32_t>(row + parts.scales / 16), codes + 256, lane);
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

// The shifts of 8 columns each: bit `From` of the code of the first.
template <int From>
void put_shifts(const uint8_t* code, uint8_t* vector, int lane) {
  uint8_t bytes[4] = {};
  for (int k = 0; k < 256; k += 8) bytes[k / 8 % 4] |= uint8_t((code[k] >> From & 1) << (k / 32));
  scatter(bytes, 4, vector, lane);
}

// ---- blocks of 256: units (of the minimums, too), scales, minimums, codes
// -------------------
template <DType T, bool InRuns = true, class Units, class Code, class Scale, class Minimum>
void pack256(const uint8_t* row, uint8_t* units, uint8_t* chunk, int lane, Units put_units, Code code,
             Scale scale, Minimum minimum) {
  constexpr Parts256 p = parts256(T);
  put_units(row, units + (p.float_units ? 4 : 2) * lane);
  for (int g = 0; p.scales + 16 * g < p.minimums; g++)
    chunk[p.scales + 16 * g + lane] = uint8_t(scale(row, uint32_t(g)));
  for (int g = 0; p.minimums + 16 * g < p.nibbles; g++)
    chunk[p.minimums + 16 * g + lane] = uint8_t(minimum(row, uint32_t(g)));
  uint8_t c[256];
  if constexpr (InRuns) all_codes(row, c, code, std::make_index_sequence<16>());
  else
    for (uint32_t j = 0; j < 256; j++) c[j] = uint8_t(code(row, j));
  constexpr bool nibbles = p.pairs > p.nibbles, pairs = p.bits > p.pairs, bits = p.shifts > p.bits;
  if constexpr (nibbles) put_nibbles<256>(c, chunk + p.nibbles, lane);
  if constexpr (pairs) put_pairs<nibbles ? 4 : 0>(c, chunk + p.pairs, lane);
  if constexpr (bits) put_bits<256, nibbles ? 4 : 2>(c, chunk + p.bits, lane);
  if constexpr (p.end > p.shifts) put_shifts<2>(c, chunk + p.shifts, lane);
}

template <int At>
void unit(const uint8_t* block, uint8_t* to) {
  std::memcpy(to, block + At, 2);
}
template <int At>
void unit_and_minimums(const uint8_t* block, uint8_t* to) {
  std::memcpy(to, block + At, 2), std::memcpy(to + 32, block + At + 2, 2);
}
void iq1_m_unit_in_parts(const uint8_t* block, uint8_t* to) {
  const auto bits = uint16_t(iq1_m_half(block));
  std::memcpy(to, &bits, 2);
}

// ---- codebook formats: codes of their levels
uint32_t iq1_code(int32_t level) {  // 8 trit +- 1
  return uint32_t(level + 9) >> 3 | (uint32_t(level + 9) >> 1 & 1) << 2;
}
uint32_t iq2_code(int32_t level) {
  return uint32_t(level < 0 ? -level : level) >> 4 | uint32_t(level < 0) << 2;
}
uint32_t iq3_xxs_level_code(int32_t level) {
  return uint32_t(level < 0 ? -level : level) >> 3 | uint32_t(level < 0) << 3;
}
uint32_t iq3_s_level_code(int32_t level) { return uint32_t(level + 15) >> 1; }

uint32_t none(const uint8_t*, uint32_t) { return 0; }

// `scale` is the tensor's, for the formats that have one.
void pack_chunk(DType t, float scale, int64_t columns, const uint8_t* row, uint8_t* units, uint8_t* chunk,
                int lane) {
  // Captureless lambdas keep the code functions inlined into the loops.
#define CODE(format) [](const uint8_t* b, uint32_t j) { return format##_code(b, j); }
#define GROUP(expression) [](const uint8_t* b, uint32_t g) { return expression; }
#define NIBBLES(at) GROUP(uint32_t(b[(at) + (g & 15)] >> (g / 16 * 4)))
#define BLOCKS32(T, code, scales) \
  case DType::T:                  \
    return pack32<DType::T>(columns, row, chunk, lane, code, scales)
#define BLOCKS256(T, put_units, code, scale, minimum) \
  case DType::T: return pack256<DType::T>(row, units, chunk, lane, put_units, code, scale, minimum)
// Lookups in codebooks are no work for vectors: one loop takes less code.
#define CODEBOOK(T, format, put_units, code_of, groups)                             \
  case DType::T:                                                                    \
    return pack256<DType::T, false>(                                                \
        row, units, chunk, lane, put_units,                                         \
        [](const uint8_t* b, uint32_t j) { return code_of(format##_level(b, j)); }, \
        GROUP(uint32_t(format##_scale(b, g) >> 1 | format##_scale(b, g + groups / 2) >> 1 << 4)), none)
  switch (t) {
    BLOCKS32(Q8_0, GROUP(uint32_t(b[2 + g] ^ 0x80)), one_scale);
    BLOCKS32(Q4_0, CODE(q4_0), one_scale);
    BLOCKS32(Q4_1, CODE(q4_1), scale_and_minimum);
    BLOCKS32(Q5_0, NIBBLES(6), one_scale);
    BLOCKS32(Q5_1, NIBBLES(8), scale_and_minimum);
    BLOCKS32(IQ4_NL, CODE(iq4_nl), one_scale);
    BLOCKS32(MXFP4, CODE(mxfp4), power_of_two);
    BLOCKS256(Q2_K, unit_and_minimums<80>, CODE(q2_k), GROUP(uint32_t(b[g])), none);
    BLOCKS256(Q3_K, unit<108>, CODE(q3_k), GROUP(q3_k_scale(b, g)), none);
    BLOCKS256(Q4_K, unit_and_minimums<0>, CODE(q4_k), GROUP(k_scale(b, g)), GROUP(k_offset(b, g)));
    BLOCKS256(Q5_K, unit_and_minimums<0>, CODE(q5_k), GROUP(k_scale(b, g)), GROUP(k_offset(b, g)));
    BLOCKS256(Q6_K, unit<208>, CODE(q6_k), GROUP(uint32_t(b[192 + g])), none);
    BLOCKS256(IQ4_XS, unit<0>, CODE(iq4_xs), GROUP(iq4_xs_scale(b, g)), none);
    BLOCKS256(TQ1_0, unit<52>, CODE(tq1_0), none, none);
    BLOCKS256(TQ2_0, unit<64>, CODE(tq2_0), none, none);
    BLOCKS256(
        I2_S, [scale](const uint8_t*, uint8_t* to) { std::memcpy(to, &scale, 4); }, CODE(i2_s), none, none);
    CODEBOOK(IQ2_XXS, iq2_xxs, unit<0>, iq2_code, 8);
    CODEBOOK(IQ2_XS, iq2_xs, unit<0>, iq2_code, 16);
    CODEBOOK(IQ2_S, iq2_s, unit<0>, iq2_code, 16);
    CODEBOOK(IQ3_XXS, iq3_xxs, unit<0>, iq3_xxs_level_code, 8);
    CODEBOOK(IQ3_S, iq3_s, unit<0>, iq3_s_level_code, 8);
    CODEBOOK(IQ1_S, iq1_s, unit<0>, iq1_code, 8);
    CODEBOOK(IQ1_M, iq1_m, iq1_m_unit_in_parts, iq1_code, 16);
    default: return pack_columns(info(t).bytes, columns, row, chunk, lane);
  }
#undef CODE
#undef GROUP
#undef NIBBLES
#undef BLOCKS32
#undef BLOCKS256
#undef CODEBOOK
}

// Sixteen rows are more streams than processors foresee: what comes next in a row is asked for while its
// neighbours are laid out. Without this, packing waits for memory half of the time.
void ask_for(const uint8_t* next, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i);
}

}  // namespace

void pack_tiles(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* tiles,
                int64_t begin, int64_t end) {
  const int64_t row_size = row_bytes(type, columns), tile_size = tile_bytes(type, columns);
  end = std::min(end, rows);
  const float scale = tensor_scale(type, source, columns * (end - begin));
  const int64_t unit_step = parts256(type).unit_step;
  for (int64_t first = begin; first < end; first += kTileRows) {
    uint8_t* tile = tiles + (first - begin) / kTileRows * tile_size;
    for (int64_t k = 0; k < columns; k += kChunk) {
      const int64_t wide = std::min<int64_t>(kChunk, columns - k), bytes = row_bytes(type, wide);
      for (int64_t r = first; r < std::min(end, first + kTileRows); r++) {
        const uint8_t* row = source + (r - begin) * row_size + row_bytes(type, k);
        if (k + kChunk < columns) ask_for(row + bytes, bytes);
        else if (r + kTileRows < end) ask_for(row + kTileRows * row_size - row_bytes(type, k), bytes);
        pack_chunk(type, scale, wide, row, tile + k / kChunk * unit_step,
                   tile + chunk_offset(type, columns, k), int(r - first));
      }
    }
  }
}

}  // namespace gimbal::packed
