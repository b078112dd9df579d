// How weights and KV caches lie in the memory of the CPU and of GPUs. One lane owns one output: sixteen rows
// of a matrix are interleaved so that a vector holds the same columns of each, and sixteen keys of a cache
// likewise; on a GPU, sixteen neighbouring threads read 64 neighbouring bytes. Freestanding: kernels and the
// packing code share it.
//
// A matrix is a sequence of tiles of 16 rows (the last one padded with zeros).
//   Float weights: per column, 16 values.
//   Formats with blocks of 32: per chunk of 256 columns (the last one may be shorter), for each of its blocks
//   the 16
//     scales and then, where the format has them, the 16 minimums (2 bytes each), all padded to 64 bytes;
//     then for each block its codes.
//   Formats with blocks of 256: per block the parts of Parts256. The 16 f16 units (the scales of the whole
//     blocks), and where a format has them the 16 of the minimums, are the beginning of the block if they
//     fill 64 bytes. Units alone would leave half of that empty, so those of all blocks are together at the
//     head of the tile, padded to 64 bytes. i2_s has one f32 unit for the tensor: 16 of it are the head. Two
//     blocks of 128 of i2_s count as one. Units of codebook formats are multiplied by a power of two.
// Codes come in vectors of 64 bytes: byte 4 r + j belongs to row r and to the j-th of four columns. Codes of
// less than 8 bits share bytes: of the 8 (or 64) vectors of a block, the nibble plane keeps the first half in
// its low nibbles and the second half in its high ones; the pair plane keeps the quarters in its four pairs
// of bits, the bit plane the eighths in its bits. A code of 5 bits is a nibble and a bit, one of 6 a nibble
// and a pair, one of 3 a pair and a bit.
// Codebook formats keep no places in their codebooks, since a lookup there costs more than the bytes, but
// codes of the levels that occur:
//   iq2: a pair, the magnitude (8, 25, 43), and a bit, the sign;
//   iq3_xxs: a nibble, three bits of magnitude (4, 12, .. 52, 62) and one of sign;
//   iq3_s: a nibble, (level + 15) / 2;
//   iq1: a pair, the trit, and one bit for every 8 columns: their shift. It is one vector a block: the bit of
//   columns 32 e + 8 q to 32 e + 8 q + 7 of row r is bit e of byte 4 r + q.
// Their scales are odd, 2 s + 1: a byte holds s of group g and, higher, of group g plus half the groups.
// So they take 1.22 (iq3_s) to 1.55 (iq2_xxs) times their size in the file.
#pragma once
#include <stdint.h>

#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal::packed {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// ---- blocks of 32: bytes per block in a tile
// ------------------------------------------------------------------
struct Parts32 {
  int scales = 0;  // and minimums
  int codes = 0;
};
constexpr Parts32 parts32(DType t) {
  switch (t) {
    case DType::Q8_0: return {32, 512};
    case DType::Q4_0:
    case DType::IQ4_NL:
    case DType::MXFP4: return {32, 256};  // mxfp4: scales as bf16, which holds every power of two
    case DType::Q4_1: return {64, 256};
    case DType::Q5_0: return {32, 256 + 64};
    case DType::Q5_1: return {64, 256 + 64};
    default: return {};
  }
}
constexpr int64_t chunk_codes(DType t, int64_t blocks) { return up(blocks * parts32(t).scales, 64); }
constexpr int64_t chunk_bytes(DType t, int64_t blocks) {
  return chunk_codes(t, blocks) + blocks * parts32(t).codes;
}

// ---- blocks of 256: offsets of the parts in a block of a tile; a part that ends where it begins is not
// there ----
struct Parts256 {
  int scales = 0, minimums = 0, nibbles = 0, pairs = 0, bits = 0, shifts = 0, end = 0;
  // The first block of a tile lies behind `head` bytes and `head_step` for each block, padded; the units of
  // the first block begin the tile, and those of the next are `unit_step` further on.
  int head = 0, head_step = 0, unit_step = 0;
  bool float_units = false;  // f32
  float unit_factor = 1;
};
struct Planes {
  bool nibbles = false, pairs = false, bits = false, shifts = false;
};
// Bytes of scales and of minimums a row.
constexpr Parts256 parts256(int scales, int minimums, bool minimum_units, Planes planes) {
  Parts256 p;
  p.scales = minimum_units ? 64 : 0;
  p.minimums = p.scales + 16 * scales;
  p.nibbles = p.minimums + 16 * minimums;
  p.pairs = p.nibbles + (planes.nibbles ? 2048 : 0);
  p.bits = p.pairs + (planes.pairs ? 1024 : 0);
  p.shifts = p.bits + (planes.bits ? 512 : 0);
  p.end = p.shifts + (planes.shifts ? 64 : 0);
  p.head_step = minimum_units ? 0 : 32;
  p.unit_step = minimum_units ? p.end : 32;
  return p;
}
constexpr Parts256 codebook(int scales, Planes planes, float unit_factor) {
  Parts256 p = parts256(scales, 0, false, planes);
  p.unit_factor = unit_factor;
  return p;
}
constexpr Parts256 with_one_unit(Parts256 p) {
  p.float_units = true;
  p.head = 64, p.head_step = 0, p.unit_step = 0;
  return p;
}
constexpr Parts256 parts256(DType t) {
  constexpr Planes nibbles{.nibbles = true}, pairs{.pairs = true}, pairs_bits{.pairs = true, .bits = true},
      pairs_shifts{.pairs = true, .shifts = true};
  switch (t) {
    case DType::Q2_K: return parts256(16, 0, true, pairs);  // scale and minimum share a byte
    case DType::Q3_K: return parts256(16, 0, false, pairs_bits);
    case DType::Q4_K: return parts256(8, 8, true, nibbles);
    case DType::Q5_K: return parts256(8, 8, true, {.nibbles = true, .bits = true});
    case DType::Q6_K: return parts256(16, 0, false, {.nibbles = true, .pairs = true});
    case DType::IQ4_XS: return parts256(8, 0, false, nibbles);
    case DType::TQ1_0:  // trits are unpacked to pairs
    case DType::TQ2_0: return parts256(0, 0, false, pairs);
    case DType::I2_S: return with_one_unit(parts256(0, 0, false, pairs));
    case DType::IQ2_XXS: return codebook(4, pairs_bits, 0.125f);
    case DType::IQ2_XS:
    case DType::IQ2_S: return codebook(8, pairs_bits, 0.125f);
    case DType::IQ3_XXS: return codebook(4, nibbles, 0.25f);
    case DType::IQ3_S: return codebook(4, nibbles, 1);
    case DType::IQ1_S: return codebook(4, pairs_shifts, 0.125f);
    case DType::IQ1_M: return codebook(8, pairs_shifts, 0.125f);
    default: return {};
  }
}
// What precedes the blocks of a tile.
constexpr int64_t head_bytes(const Parts256& p, int64_t blocks) {
  return p.head + up(blocks * p.head_step, 64);
}

constexpr int64_t tile_bytes(DType t, int64_t columns) {
  // No use of info() here: its table would become a symbol that kernel objects share.
  if (t == DType::F32) return up(columns * kTileRows * 4, 64);
  if (t == DType::F16 || t == DType::BF16) return up(columns * kTileRows * 2, 64);
  if (const Parts256 p = parts256(t); p.end)
    return columns % 256 ? 0 : head_bytes(p, columns / 256) + columns / 256 * p.end;
  if (!parts32(t).codes) return 0;  // no packed layout
  const int64_t whole = columns / kChunk, rest = columns % kChunk / 32;
  return whole * chunk_bytes(t, kChunk / 32) + (rest ? chunk_bytes(t, rest) : 0);
}
// Where in a tile of so many columns the chunk that begins with column k (a multiple of 256) lies.
constexpr int64_t chunk_offset(DType t, int64_t columns, int64_t k) {
  if (const Parts256 p = parts256(t); p.end) return head_bytes(p, columns / 256) + k / 256 * p.end;
  return k / kChunk * tile_bytes(t, kChunk);
}
constexpr int64_t packed_bytes(DType t, int64_t columns, int64_t rows) {
  return tile_bytes(t, columns) * ((rows + kTileRows - 1) / kTileRows);
}

// ---- caches: page after page; in a page, head after head
// ------------------------------------------------------- Keys of a head: per 16 positions, per dimension, 16
// values (one per position). Values of a head: per position, head_dim values padded to a multiple of 16.
// Quantized, of both: per 16 positions, per block of 32 dimensions, a tile: the 16 f16 steps, then the codes
// of the blocks as tensor/quant/<format>.inc has them, for keys byte by byte (16 positions' first bytes, and
// so on), for values position by position. So a vector of codes is one or two dimensions of 16 keys, or 16 or
// 32 dimensions of one value.
constexpr int kCacheBlock = 32;
constexpr int64_t cache_tile_bytes(DType t) {
  return t == DType::Q8_0 ? 16 * 34 : t == DType::Q4_0 ? 16 * 18 : 0;  // 0: plain numbers
}
constexpr int64_t cache_head_bytes(DType t, bool is_key, int64_t head_dim) {
  if (cache_tile_bytes(t))
    return kPagePositions / 16 * (up(head_dim, kCacheBlock) / kCacheBlock) * cache_tile_bytes(t);
  return kPagePositions * (is_key ? head_dim : up(head_dim, 16)) * (t == DType::F32 ? 4 : 2);
}
constexpr int64_t cache_bytes(DType t, bool is_key, int64_t head_dim, int64_t heads, int64_t pages) {
  return pages * heads * cache_head_bytes(t, is_key, head_dim);
}

}  // namespace
}  // namespace gimbal::packed
