// Quantized KV caches: blocks of 32 dimensions of one position, 16 positions to a tile (layout.h). Decoded in
// registers, for all heads that read them: a code times its step is exact in f32, and the sum with a minimum
// is rounded once, so attention gives the same bits as with stored decoded numbers.
#pragma once

#include "backends/cpu/kernels/memory.h"

// Codes of a tile as numbers of steps. Keys: dimension 16 Half + d of 16 positions; values: 16 dimensions
// each.
struct CodesQ8_0 {
  static constexpr DType type = DType::Q8_0;
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
  static constexpr DType type = DType::Q4_0;
  template <int Half>
  static inline F key(const uint8_t* codes, int d) {
    return nibble_less_8<4 * Half>(load_u8(codes + 16 * d));
  }
  static inline void value(const uint8_t* codes, int64_t j, F* y) {
    const I x = load_u8(codes + 16 * j);
    y[0] = nibble_less_8<0>(x), y[1] = nibble_less_8<4>(x);
  }
};
struct CodesQ4_1 {
  static constexpr DType type = DType::Q4_1;
  template <int Half>
  static inline F key(const uint8_t* codes, int d) {
    return to_float(nibble<4 * Half>(load_u8(codes + 16 * d)));
  }
  static inline void value(const uint8_t* codes, int64_t j, F* y) {
    const I x = load_u8(codes + 16 * j);
    y[0] = to_float(nibble<0>(x)), y[1] = to_float(nibble<4>(x));
  }
};
struct CodesIQ4_NL {
  static constexpr DType type = DType::IQ4_NL;
  template <int Half>
  static inline F key(const uint8_t* codes, int d) {
    return level_of_nibble<4 * Half>(load_u8(codes + 16 * d), kNonLinearLevels);
  }
  static inline void value(const uint8_t* codes, int64_t j, F* y) {
    const I x = load_u8(codes + 16 * j);
    y[0] = level_of_nibble<0>(x, kNonLinearLevels), y[1] = level_of_nibble<4>(x, kNonLinearLevels);
  }
};
// Of 20 bytes of codes, the first four have the fifth bits. A code without its bit is 16 less.
struct CodesQ5_0 {
  static constexpr DType type = DType::Q5_0;
  template <int Half>
  static inline F key(const uint8_t* codes, int d) {
    const I low = nibble<4 * Half>(load_u8(codes + 16 * (4 + d)));
    const I bit = bit_of(load_u8(codes + 16 * (2 * Half + d / 8)), d % 8);
    return to_float(sub(add(low, shift_left<4>(bit)), splat(int32_t(16))));
  }
  static inline void value(const uint8_t* codes, int64_t j, F* y) {
    const uint8_t* at = codes + 20 * j;
    const auto bits = read<uint32_t>(at);
    const I x = load_u8(at + 4), sixteen = splat(int32_t(16));
    y[0] = add(to_float(sub(nibble<0>(x), sixteen)), where_bits(bits, 16.f));
    y[1] = add(to_float(sub(nibble<4>(x), sixteen)), where_bits(bits >> 16, 16.f));
  }
};

// See Plain in attention.h.
template <class C>
struct Quantized {
  static constexpr bool quantized = true;
  static constexpr int halves = gimbal::cpu::cache_halves(C::type),
                       bytes = int(gimbal::cpu::cache_tile_bytes(C::type));
  const uint8_t* codes;
  F half[halves];  // the steps, the minimums
  float one[halves][16];
  static inline const uint8_t* tile(const uint8_t* page, int32_t hd, int s, int32_t d) {
    return page + (s * hd + d) / 32 * bytes;
  }
  static inline Quantized keys(const uint8_t* page, int32_t hd, int s, int32_t d) {
    const uint8_t* t = tile(page, hd, s, d);
    Quantized q;
    q.codes = t + 32 * halves;
    for (int h = 0; h < halves; h++) q.half[h] = load(reinterpret_cast<const uint16_t*>(t + 32 * h));
    return q;
  }
  static inline Quantized values(const uint8_t* page, int32_t hd, int s, int32_t v) {
    Quantized q = keys(page, hd, s, 16 * v);
    for (int h = 0; h < halves; h++) store(q.one[h], q.half[h]);
    return q;
  }
  template <int Half>
  inline F key(int d) const {
    const F x = mul(C::template key<Half>(codes, d), half[0]);
    if constexpr (halves == 2) return add(x, half[1]);
    else return x;
  }
  template <int N>
  inline void value(int64_t j, F* y) const {
    C::value(codes, j, y);
    for (int n = 0; n < N; n++) {
      y[n] = mul(y[n], splat(one[0][j]));
      if constexpr (halves == 2) y[n] = add(y[n], splat(one[1][j]));
    }
  }
};

// One head at one position: `tiles` are those of its 16 positions, `lane` its place among them.
template <DType T>
inline void write_blocks(const float* x, int32_t hd, bool is_key, int lane, uint8_t* tiles) {
  constexpr int64_t tile_bytes = gimbal::cpu::cache_tile_bytes(T);
  constexpr int bytes = gimbal::cpu::cache_code_bytes(T), halves = gimbal::cpu::cache_halves(T);
  for (int32_t d = 0; d < hd; d += 32, tiles += tile_bytes) {
    uint8_t block[kMostBlockBytes];
    encode_cached(T, x + d, block);
    for (int h = 0; h < halves; h++) __builtin_memcpy(tiles + 32 * h + 2 * lane, block + 2 * h, 2);
    uint8_t* codes = tiles + 32 * halves;
    for (int i = 0; i < bytes; i++) codes[is_key ? 16 * i + lane : lane * bytes + i] = block[2 * halves + i];
  }
}
