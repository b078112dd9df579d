// Quantized KV caches: blocks of 32 dimensions of one position, 16 positions to a tile (layout.h). Decoded in
// registers, for all heads that read them: a code times its step is exact in f32, so attention gives the same
// bits as with stored decoded numbers.
#pragma once

#include "backends/cpu/kernels/memory.h"

// Codes of a tile as numbers of steps. Keys: dimension 16 Half + d of 16 positions; values: 16 dimensions
// each.
struct CodesQ8_0 {
  static constexpr int bytes = int(gimbal::cpu::cache_tile_bytes(DType::Q8_0));
  template <int Half>
  static inline F key(const uint8_t* codes, int d) {
    return to_float(load_i8(reinterpret_cast<const int8_t*>(codes) + 16 * (16 * Half + d)));
  }
  static inline void value(const uint8_t* codes, int64_t j, F* y) {
    const auto* at = reinterpret_cast<const int8_t*>(codes) + 32 * j;
    y[0] = to_float(load_i8(at)), y[1] = to_float(load_i8(at + 16));
  }
};
struct CodesQ4_0 {
  static constexpr int bytes = int(gimbal::cpu::cache_tile_bytes(DType::Q4_0));
  template <int Half>
  static inline F key(const uint8_t* codes, int d) {
    return nibble_less_8<4 * Half>(load_u8(codes + 16 * d));
  }
  static inline void value(const uint8_t* codes, int64_t j, F* y) {
    const I x = load_u8(codes + 16 * j);
    y[0] = nibble_less_8<0>(x), y[1] = nibble_less_8<4>(x);
  }
};

// See Plain in attention.h.
template <class C>
struct Quantized {
  static constexpr bool quantized = true;
  const uint8_t* codes;
  F steps;
  float step[16];
  static inline const uint8_t* tile(const uint8_t* page, int32_t hd, int s, int32_t d) {
    return page + (s * hd + d) / 32 * C::bytes;
  }
  static inline Quantized keys(const uint8_t* page, int32_t hd, int s, int32_t d) {
    const uint8_t* t = tile(page, hd, s, d);
    return {t + 32, load(reinterpret_cast<const uint16_t*>(t)), {}};
  }
  static inline Quantized values(const uint8_t* page, int32_t hd, int s, int32_t v) {
    Quantized q = keys(page, hd, s, 16 * v);
    store(q.step, q.steps);
    return q;
  }
  template <int Half>
  inline F key(int d) const {
    return mul(C::template key<Half>(codes, d), steps);
  }
  template <int N>
  inline void value(int64_t j, F* y) const {
    C::value(codes, j, y);
    for (int n = 0; n < N; n++) y[n] = mul(y[n], splat(step[j]));
  }
};

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
