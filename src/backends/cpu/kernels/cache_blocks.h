// Quantized KV caches: blocks of 32 dimensions of one position, 16 positions to a tile (layout.h). Reading
// one gives floats, and from there on everything is as with an f32 cache: a code times its step is exact in
// f32, so what attention computes is the same as if the decoded numbers had been kept.
#pragma once

#include "backends/cpu/kernels/memory.h"

// Floats of a tile: 32 vectors. Keys: one dimension of 16 positions each. Values: two per position.
constexpr int kTileFloats = 32 * 16;

// Two vectors of a tile that come from one place, as whole numbers of steps: of keys, dimensions j and j +
// 16; of values, both halves of position j.
struct CodePair {
  I first, second;
};
struct CodesQ8_0 {
  template <bool keys>
  static inline CodePair pair(const uint8_t* codes, int j) {
    const auto* at = reinterpret_cast<const int8_t*>(codes) + (keys ? 16 : 32) * j;
    return {load_i8(at), load_i8(at + (keys ? 256 : 16))};
  }
};
struct CodesQ4_0 {
  template <bool keys>
  static inline CodePair pair(const uint8_t* codes, int j) {
    const I bytes = load_u8(codes + 16 * j), eight = splat(int32_t(-8));
    return {add(nibble<0>(bytes), eight), add(nibble<4>(bytes), eight)};
  }
};

template <class C, bool keys>
void decode_tile(const uint8_t* tile, float* y) {
  const F steps = load(reinterpret_cast<const uint16_t*>(tile));
  float step[16];
  store(step, steps);
  for (int j = 0; j < 16; j++) {
    const CodePair x = C::template pair<keys>(tile + 32, j);
    const F by = keys ? steps : splat(step[j]);
    store(y + (keys ? 16 : 32) * j, mul(to_float(x.first), by));
    store(y + (keys ? 16 : 32) * j + (keys ? 256 : 16), mul(to_float(x.second), by));
  }
}

struct TileReader {
  void (*keys)(const uint8_t* tile, float* y);    // 32 x 16 floats, dimension by dimension
  void (*values)(const uint8_t* tile, float* y);  // 16 x 32 floats, position by position
  int64_t bytes;                                  // of a tile; 0: the cache holds plain numbers
};
inline TileReader tile_reader(DType t) {
  const int64_t bytes = gimbal::cpu::cache_tile_bytes(t);
  if (t == DType::Q8_0) return {decode_tile<CodesQ8_0, true>, decode_tile<CodesQ8_0, false>, bytes};
  if (t == DType::Q4_0) return {decode_tile<CodesQ4_0, true>, decode_tile<CodesQ4_0, false>, bytes};
  return {nullptr, nullptr, 0};
}

// One head at one position: `tiles` are those of its 16 positions, `lane` its place among them.
inline void write_blocks(DType t, const float* x, int32_t hd, bool is_key, int lane, uint8_t* tiles) {
  const int64_t tile_bytes = gimbal::cpu::cache_tile_bytes(t);
  const int bytes = int(tile_bytes / 16) - 2;
  for (int32_t d = 0; d < hd; d += 32, tiles += tile_bytes) {
    uint8_t block[34];
    if (t == DType::Q8_0) encode_q8_0(x + d, block);
    else encode_q4_0(x + d, block);
    mark_if_not_finite(x + d, block);
    __builtin_memcpy(tiles + 2 * lane, block, 2);
    for (int i = 0; i < bytes; i++) tiles[32 + (is_key ? 16 * i + lane : lane * bytes + i)] = block[2 + i];
  }
}
