#include "packing/pack.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "packing/layout.h"
#include "tensor/quant.h"
#include "tensor/quant/values.h"

namespace gimbal::packing {
namespace {

// Everything below packs one chunk of up to 256 columns of one row: small enough for the sixteen rows of a
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

// Codes to planes; each plane takes its own bits of the code. Shared by the formats.
template <int Count>
[[gnu::noinline]] void put_nibbles(const uint8_t* code, uint8_t* plane, int lane) {
  uint8_t bytes[Count / 2];
  for (int k = 0; k < Count / 2; k++) bytes[k] = uint8_t((code[k] & 15) | code[k + Count / 2] << 4);
  scatter(bytes, Count / 2, plane, lane);
}
template <int Count, int From>
[[gnu::noinline]] void put_pairs(const uint8_t* code, uint8_t* plane, int lane) {
  constexpr int n = Count / 4;
  uint8_t bytes[n];
  for (int k = 0; k < n; k++)
    bytes[k] = uint8_t((code[k] >> From & 3) | (code[k + n] >> From & 3) << 2 |
                       (code[k + 2 * n] >> From & 3) << 4 | (code[k + 3 * n] >> From & 3) << 6);
  scatter(bytes, n, plane, lane);
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

// The codes of a block, in a compile-time number of runs of 16: so values that depend only on the run
// (shifts, offsets) are constants, and the loop over it becomes a vector.
template <class Code, size_t... R>
void all_codes(const uint8_t* block, uint8_t* out, Code code, std::index_sequence<R...>) {
  auto run = [&](auto r) {
    for (uint32_t i = 0; i < 16; i++) out[16 * r + i] = uint8_t(code(block, 16 * uint32_t(r) + i));
  };
  (run(std::integral_constant<size_t, R>{}), ...);
}

// The shifts of 8 columns each: bit `From` of the code of the first.
template <int From>
void put_shifts(const uint8_t* code, uint8_t* vector, int lane) {
  uint8_t bytes[4] = {};
  for (int k = 0; k < 256; k += 8) bytes[k / 8 % 4] |= uint8_t((code[k] >> From & 1) << (k / 32));
  scatter(bytes, 4, vector, lane);
}

// The code of a level as the planes keep it (layout.h).
template <DType T>
uint32_t code_of_level(int32_t level) {
  constexpr Format f = format_of(T);
  const auto magnitude = uint32_t(level < 0 ? -level : level), sign = uint32_t(level < 0);
  if constexpr (f.levels == Levels::Iq2) return magnitude >> 4 | sign << 2;
  else if constexpr (f.levels == Levels::Iq3) return magnitude >> 3 | sign << 3;
  else if constexpr (f.doubled) return uint32_t(level + f.zero) >> 1;
  else
    return uint32_t(level + f.zero) >> 3 | (uint32_t(level + f.zero) >> 1 & 1) << 2;  // a trit and its shift
}

template <class Meaning>
uint32_t unit_bits(const uint8_t* block, uint32_t group) {
  if constexpr (requires { Meaning::unit_bits(block, group); }) return Meaning::unit_bits(block, group);
  else if constexpr (requires { Meaning::unit_bits(block); }) return Meaning::unit_bits(block);
  else return read_le<uint16_t>(block + Meaning::unit_at);
}
void put_half(uint32_t bits, uint8_t* to) {
  const auto half = uint16_t(bits);
  std::memcpy(to, &half, 2);
}

// Groups with a float scale.
template <DType T, class Meaning>
void pack32(int64_t columns, const uint8_t* row, uint8_t* chunk, int lane) {
  constexpr Format f = format_of(T);
  constexpr Parts32 parts = parts32(T);
  constexpr uint32_t kBlock = info(T).block;
  uint8_t *scales = chunk + 2 * lane, *codes = chunk + layout_of(T).chunk_codes(columns / 32);
  for (int64_t k = 0; k < columns; k += kBlock, row += info(T).bytes) {
    for (uint32_t g = 0; g < kBlock / f.group; g++, scales += parts.scales) {
      if constexpr (f.scales != Scales::OfBlock) put_half(unit_bits<Meaning>(row, g), scales);
      if constexpr (f.minimums) std::memcpy(scales + 32, row + Meaning::minimum_unit_at, 2);
    }
    for (uint32_t j = 0; j < kBlock; j += 32, codes += parts.codes) {
      uint8_t c[32];
      const auto code = [j](const uint8_t* b, uint32_t i) {
        if constexpr (requires { Meaning::low_of(b, i); }) return Meaning::low_of(b, j + i);
        else return Meaning::code_of(b, j + i);
      };
      all_codes(row, c, code, std::make_index_sequence<2>());
      if constexpr (f.bytes) scatter(c, 32, codes, lane);
      else if constexpr (f.nibbles) put_nibbles<32>(c, codes, lane);
      else if constexpr (f.pairs) put_pairs<32, 0>(c, codes, lane);
      else put_bits<32, 0>(c, codes, lane);
      if constexpr (f.bits && f.nibbles) put_fifth_bits(Meaning::fifth_bits(row), codes + 256, lane);
    }
  }
}

// Groups with an integer scale.
template <DType T, class Meaning>
void pack256(const uint8_t* row, uint8_t* units, uint8_t* chunk, int lane) {
  constexpr Format f = format_of(T);
  constexpr Parts256 p = parts256(T);
  put_half(unit_bits<Meaning>(row, 0), units + 2 * lane);
  if constexpr (f.minimums) std::memcpy(units + 32 + 2 * lane, row + Meaning::minimum_unit_at, 2);
#ifdef __clang__
// clang 22 makes vectors of this loop that read wrong bytes for q3_k (scripts/check/packing.sh); it has at
// most 16 steps.
#pragma clang loop vectorize(disable)
#endif
  for (uint32_t g = 0; g < scale_bytes(f); g++) {
    uint8_t& to = chunk[p.scales + 16 * g + lane];
    if constexpr (f.scales == Scales::Odd)
      to = uint8_t(Meaning::scale_of(row, g) >> 1 | Meaning::scale_of(row, g + scale_bytes(f)) >> 1 << 4);
    else if constexpr (f.scales != Scales::OfBlock) to = uint8_t(Meaning::scale_of(row, g));
  }
  if constexpr (minimum_bytes(f) > 0)
    for (uint32_t g = 0; g < minimum_bytes(f); g++)
      chunk[p.minimums + 16 * g + lane] = uint8_t(Meaning::minimum_of(row, g));
  uint8_t c[256];
  // Lookups in codebooks do not vectorize: one loop takes less code.
  if constexpr (requires { Meaning::level_of(row, 0u); })
    for (uint32_t j = 0; j < 256; j++) c[j] = uint8_t(code_of_level<T>(Meaning::level_of(row, j)));
  else
    all_codes(
        row, c, [](const uint8_t* b, uint32_t j) { return Meaning::code_of(b, j); },
        std::make_index_sequence<16>());
  if constexpr (f.nibbles) put_nibbles<256>(c, chunk + p.nibbles, lane);
  if constexpr (f.pairs) put_pairs<256, f.nibbles ? 4 : 0>(c, chunk + p.pairs, lane);
  if constexpr (f.bits) put_bits<256, f.nibbles ? 4 : 2>(c, chunk + p.bits, lane);
  if constexpr (f.shifts) put_shifts<2>(c, chunk + p.shifts, lane);
}

template <DType T, class Meaning>
void pack_chunk(float scale, int64_t columns, const uint8_t* row, uint8_t* units, uint8_t* chunk, int lane) {
  constexpr Format f = format_of(T);
  if constexpr (f.number != Number::Codes) pack_columns(info(T).bytes, columns, row, chunk, lane);
  else if constexpr (f.x == DType::A8_32) pack32<T, Meaning>(columns, row, chunk, lane);
  else if constexpr (f.x == DType::A8_256) pack256<T, Meaning>(row, units, chunk, lane);
  else if constexpr (f.x == DType::A8_ROW) {
    std::memcpy(units + 4 * lane, &scale, 4);  // of the tensor
    pack32<T, Meaning>(columns, row, chunk, lane);
  }
}

using PackChunk = void (*)(float, int64_t, const uint8_t*, uint8_t*, uint8_t*, int);
PackChunk pack_chunk_of(DType t) {
  switch (t) {
#define GIMBAL_FORMAT(id, name, ...) \
  case DType::id:                    \
    return pack_chunk<DType::id, quant::id>;
#include "tensor/formats.def"
#undef GIMBAL_FORMAT
    default: return nullptr;
  }
}

// Sixteen rows are more streams than processors prefetch on their own: the next bytes of a row are prefetched
// while its neighbours are packed. Without this, packing waits for memory half of the time.
void ask_for(const uint8_t* next, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i);
}

}  // namespace

void pack_tiles(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* tiles,
                int64_t begin, int64_t end) {
  const Layout layout = layout_of(type);
  const int64_t row_size = row_bytes(type, columns), tile_size = layout.tile_bytes(columns);
  end = std::min(end, rows);
  const float scale = tensor_scale(type, source, columns * (end - begin));
  const PackChunk pack_chunk = pack_chunk_of(type);
  for (int64_t first = begin; first < end; first += kTileRows) {
    uint8_t* tile = tiles + (first - begin) / kTileRows * tile_size;
    for (int64_t k = 0; k < columns; k += kChunk) {
      // Looked up once, because it does not depend on the row: these are tables of formats.
      const int64_t wide = std::min<int64_t>(kChunk, columns - k), bytes = row_bytes(type, wide),
                    before = row_bytes(type, k);
      uint8_t* chunk = tile + layout.chunk_offset(columns, k);
      for (int64_t r = first; r < std::min(end, first + kTileRows); r++) {
        const uint8_t* row = source + (r - begin) * row_size + before;
        if (k + kChunk < columns) ask_for(row + bytes, bytes);
        else if (r + kTileRows < end) ask_for(row + kTileRows * row_size - before, bytes);
        pack_chunk(scale, wide, row, tile + k / kChunk * layout.parts256.unit_step, chunk, int(r - first));
      }
    }
  }
}

}  // namespace gimbal::packing
