// Memory layout of weights and KV caches on the CPU and on GPUs. One lane computes one output: sixteen rows
// of a matrix are interleaved so that a vector holds the same columns of each, and likewise sixteen keys of a
// cache; on a GPU, sixteen neighbouring threads read 64 neighbouring bytes. Freestanding: kernels and packing
// code share it.
//
// A matrix is a sequence of tiles of 16 rows (the last one padded with zeros).
//   Float weights: per column, 16 values.
//   Formats against a8_32: per chunk of 256 columns (the last one may be shorter), for each of its groups of
//     columns the 16 scales and then, where the format has them, the 16 minimums (2 bytes each), all padded
//     to 64 bytes; then for each 32 columns their codes.
//   Formats against a8_256: per block the parts of Parts256. The 16 f16 units (the scales of the whole
//     blocks), and where a format has them the 16 of the minimums, are the beginning of the block if they
//     fill 64 bytes. Units alone would leave half of that empty, so those of all blocks are together at the
//     head of the tile, padded to 64 bytes. Units of codebook formats are multiplied by a power of two.
//   Formats against a8_row: the f32 scale of the tensor, 16 times; then for each 32 columns their codes.
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
#include "tensor/format.h"

namespace gimbal::packing {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Groups of columns with a float scale, for a8_32: bytes in a tile of a group's scales (and minimums), and of
// the codes of 32 columns.
struct Parts32 {
  int scales = 0, codes = 0, group = 32;
  constexpr int64_t scales_of(int64_t blocks) const { return blocks * 32 / group * scales; }  // of 32 columns
};
constexpr Parts32 parts32(DType t) {
  const Format f = format_of(t);
  if (f.x != DType::A8_32 && f.x != DType::A8_ROW) return {};
  return {f.tensor_scale ? 0
          : f.minimums   ? 64
                         : 32,
          64 * (8 * f.bytes + 4 * f.nibbles + 2 * f.pairs + f.bits), f.group};
}
// If a format has one scale per tensor, a tile begins with 16 copies of it (f32).
constexpr int64_t kTensorScales = 64;
constexpr int64_t tensor_scales(DType t) { return format_of(t).tensor_scale ? kTensorScales : 0; }
// Groups with an integer scale, for a8_256: offsets of the parts in a block of 256 columns of a tile. A part
// with begin = end does not exist.
struct Parts256 {
  int scales = 0, minimums = 0, nibbles = 0, pairs = 0, bits = 0, shifts = 0, end = 0;
  // The first block of a tile follows `head_step` bytes per block, padded; the units of the first block are
  // at the start of the tile, and those of each next block `unit_step` further on.
  int head_step = 0, unit_step = 0;
};
// Bytes of a row's scales, and of its minimums if they have bytes of their own.
constexpr int scale_bytes(const Format& f) {
  return f.scales == Scales::OfBlock ? 0 : 256 / f.group / (f.scales == Scales::Odd ? 2 : 1);
}
constexpr int minimum_bytes(const Format& f) {
  return f.minimums && f.scales != Scales::Paired ? 256 / f.group : 0;
}
constexpr Parts256 parts256(DType t) {
  const Format f = format_of(t);
  Parts256 p;
  if (f.x != DType::A8_256) return p;
  p.scales = f.minimums ? 64 : 0;
  p.minimums = p.scales + 16 * scale_bytes(f);
  p.nibbles = p.minimums + 16 * minimum_bytes(f);
  p.pairs = p.nibbles + 2048 * f.nibbles;
  p.bits = p.pairs + 1024 * f.pairs;
  p.shifts = p.bits + 512 * f.bits;
  p.end = p.shifts + 64 * f.shifts;
  if (f.minimums) p.unit_step = p.end;
  else p.head_step = p.unit_step = 32;
  return p;
}
// Size of the tile's header before its blocks.
constexpr int64_t head_bytes(const Parts256& p, int64_t blocks) { return up(blocks * p.head_step, 64); }

// All layout facts of one format. Kernels hold it as a constant: computing these facts for every chunk of
// every tile would take a tenth of their time.
struct Layout {
  Parts32 parts32;
  Parts256 parts256;
  int64_t number = 0;  // bytes of a plain number
  int64_t scales = 0;  // bytes at the start of a tile: the scale of the tensor

  constexpr int64_t chunk_codes(int64_t blocks) const { return up(parts32.scales_of(blocks), 64); }
  constexpr int64_t chunk_bytes(int64_t blocks) const { return chunk_codes(blocks) + blocks * parts32.codes; }
  // 0: no such tile.
  constexpr int64_t tile_bytes(int64_t columns) const {
    if (number) return up(columns * kTileRows * number, 64);
    if (parts256.end)
      return columns % 256 ? 0 : head_bytes(parts256, columns / 256) + columns / 256 * parts256.end;
    if (!parts32.codes || columns % parts32.group) return 0;
    const int64_t whole = columns / kChunk, rest = columns % kChunk / 32;
    return scales + whole * chunk_bytes(kChunk / 32) + (rest ? chunk_bytes(rest) : 0);
  }
  // Offset of the chunk that begins with column k (a multiple of 256) in a tile of `columns` columns.
  constexpr int64_t chunk_offset(int64_t columns, int64_t k) const {
    if (number) return k * kTileRows * number;
    if (parts256.end) return head_bytes(parts256, columns / 256) + k / 256 * parts256.end;
    return scales + k / kChunk * chunk_bytes(kChunk / 32);
  }
};
constexpr Layout layout_of(DType t) {
  // Not info(): its table would become a symbol shared by kernel objects.
  const int64_t number = t == DType::F32 ? 4 : t == DType::F16 || t == DType::BF16 ? 2 : 0;
  return {parts32(t), parts256(t), number, tensor_scales(t)};
}
constexpr int64_t tile_bytes(DType t, int64_t columns) { return layout_of(t).tile_bytes(columns); }
constexpr int64_t packed_bytes(DType t, int64_t columns, int64_t rows) {
  return tile_bytes(t, columns) * ((rows + kTileRows - 1) / kTileRows);
}

// Caches: page after page; in a page, head after head. Keys of a head: per 16 positions, per dimension, 16
// values (one per position). Values of a head: per position, head_dim values padded to a multiple of 16.
// Quantized, of both: per 16 positions, per block of 32 dimensions, a tile: the 16 f16 steps, for formats
// with minimums the 16 f16 minimums, then the codes of the blocks as tensor/quant/<format>.inc has them, for
// keys byte by byte (16 positions' first bytes, and so on), for values position by position. So a vector of
// codes is one or two dimensions of 16 keys, or 16 or 32 dimensions of one value. (Q5_0 has its 4 bytes of
// fifth bits before the 16 of the other bits.)
constexpr int kCacheBlock = 32;
// Halves of a block, and bytes of its codes; 0: plain numbers.
constexpr int cache_halves(DType t) { return format_of(t).minimums ? 2 : 1; }
constexpr int cache_code_bytes(DType t) {
  const Format f = format_of(t);
  return f.number == Number::Codes ? 32 * f.bytes + 16 * f.nibbles + 4 * f.bits : 0;
}
constexpr int64_t cache_tile_bytes(DType t) {
  return cache_code_bytes(t) ? 16 * (2 * cache_halves(t) + cache_code_bytes(t)) : 0;
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
}  // namespace gimbal::packing
