// How weights and KV caches lie in the memory of this backend. One lane owns one output: sixteen rows of a
// matrix are interleaved so that a vector holds the same column of each, and sixteen keys of a cache
// likewise. Freestanding: kernels and the packing code share it.
//
// A matrix is a sequence of tiles of 16 rows (the last one padded with zeros).
//   f32, f16, bf16   per column: 16 values.
//   q8_0, q4_0       per chunk of 256 columns (the last one may be shorter): the scales of its blocks, 16 f16
//   each, padded to
//                    64 bytes; then the codes of its blocks, in vectors of 64 bytes = 16 rows x 4 columns.
//                    q8_0: 8 vectors of code + 128. q4_0: 4 vectors, low nibbles hold columns 0-15, high
//                    nibbles 16-31.
//   q6_k             per block of 256: 16 f16 scales, padded to 64 bytes; 16 x 16 i8 scales of its
//   sub-blocks; 32 vectors of low
//                    nibbles (vector v and v + 32 of the 64), 16 vectors of upper bit pairs (v, v + 16, v +
//                    32, v + 48).
#pragma once
#include <stdint.h>

#include "ops/op.h"
#include "tensor/dtype.h"

namespace gimbal::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Bytes of the code vectors of one 32-column block in a tile.
constexpr int64_t code_bytes(DType t) { return t == DType::Q8_0 ? 512 : 256; }
constexpr int64_t chunk_bytes(DType t, int64_t blocks) {
  return up(blocks * 32, 64) + blocks * code_bytes(t);
}
constexpr int64_t kQ6Scales = 64, kQ6Low = kQ6Scales + 256, kQ6High = kQ6Low + 2048,
                  kQ6Block = kQ6High + 1024;

constexpr int64_t tile_bytes(DType t, int64_t columns) {
  switch (t) {
    case DType::F32: return up(columns * 64, 64);
    case DType::F16:
    case DType::BF16: return up(columns * 32, 64);
    case DType::Q8_0:
    case DType::Q4_0: {
      int64_t whole = columns / kChunk, rest = columns % kChunk / 32;
      return whole * chunk_bytes(t, kChunk / 32) + (rest ? chunk_bytes(t, rest) : 0);
    }
    case DType::Q6_K: return columns / 256 * kQ6Block;
    default: return 0;  // no packed layout
  }
}
constexpr int64_t packed_bytes(DType t, int64_t columns, int64_t rows) {
  return tile_bytes(t, columns) * ((rows + 15) / 16);
}

// A cache is page after page; in a page, head after head. Keys of a head: per 16 positions, per dimension, 16
// values (one per position). Values of a head: per position, head_dim values padded to a multiple of 16.
constexpr int64_t cache_head_values(bool is_key, int64_t head_dim) {
  return kPagePositions * (is_key ? head_dim : up(head_dim, 16));
}
constexpr int64_t cache_bytes(DType t, bool is_key, int64_t head_dim, int64_t heads, int64_t pages) {
  return pages * heads * cache_head_values(is_key, head_dim) * info(t).bytes;
}

}  // namespace
}  // namespace gimbal::cpu
