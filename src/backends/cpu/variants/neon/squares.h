// Products of bytes for kernels/half_tile_product.h. A Square is a register of sums: of two outputs and two
// rows with i8mm (0 with 0, 0 with 1, 1 with 0, 1 with 1), of four outputs and one row with a dot product. A
// Bytes operand is the codes of a square's outputs: eight columns each, or four.
#pragma once
#include <arm_neon.h>
#include <stdint.h>

#include "vec.h"

namespace CPU_VARIANT {
namespace {

using Bytes = int8x16_t;
using Square = int32x4_t;
using SquareF = float32x4_t;

inline Square no_sums() { return vdupq_n_s32(0); }
inline SquareF to_float(Square x) { return vcvtq_f32_s32(x); }
inline SquareF no_total() { return vdupq_n_f32(0); }
inline SquareF mul(SquareF x, SquareF y) { return vmulq_f32(x, y); }
inline SquareF fma(SquareF x, SquareF y, SquareF z) { return vfmaq_f32(z, x, y); }
inline Bytes load_bytes(const int8_t* p) { return vld1q_s8(p); }
// A number for each output of a square, from what store_for_outputs() wrote.
inline SquareF of_outputs(const float* p) { return vld1q_f32(p); }

inline uint8x16_t less(uint8x16_t codes, uint8_t zero) { return vsubq_u8(codes, vdupq_n_u8(zero)); }

#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr int kSquareOutputs = 2, kSquareRows = 2;

// Sixteen columns of two rows: the first eight of both, and the last.
struct RowsOfSquare {
  int8x16_t part[2];
};
inline RowsOfSquare load_rows(const int8_t* a, const int8_t* b) {
  const int64x2_t p = vreinterpretq_s64_s8(vld1q_s8(a)), q = vreinterpretq_s64_s8(vld1q_s8(b));
  return {vreinterpretq_s8_s64(vzip1q_s64(p, q)), vreinterpretq_s8_s64(vzip2q_s64(p, q))};
}
// With step K of the sixteen columns.
template <int K>
inline Square multiply(Square sum, Bytes codes, const RowsOfSquare& rows) {
  return vmmlaq_s32(sum, codes, rows.part[K]);
}
inline SquareF of_rows(float a, float b) {
  const float32x2_t two = vset_lane_f32(b, vdup_n_f32(a), 1);
  return vcombine_f32(two, two);
}
inline void store_for_outputs(float* to, F x) {
  for (const float32x4_t v : {x.a, x.b, x.c, x.d}) {
    vst1q_f32(to, vzip1q_f32(v, v)), vst1q_f32(to + 4, vzip2q_f32(v, v));
    to += 8;
  }
}
// Eight outputs of two rows.
inline void store_rows(float* a, float* b, const SquareF (&s)[4]) {
  for (int i = 0; i < 4; i += 2)
    vst1q_f32(a + 2 * i, vuzp1q_f32(s[i], s[i + 1])), vst1q_f32(b + 2 * i, vuzp2q_f32(s[i], s[i + 1]));
}
// The operands of sixteen outputs and eight columns, of which each Codes has four. `zero` is subtracted.
inline void store_operands(int8_t* to, Codes columns, Codes next, uint8_t zero) {
  const auto put = [&](uint8x16_t x, uint8x16_t y) {
    const uint32x4_t p = vreinterpretq_u32_u8(less(x, zero)), q = vreinterpretq_u32_u8(less(y, zero));
    vst1q_s8(to, vreinterpretq_s8_u32(vzip1q_u32(p, q)));
    vst1q_s8(to + 16, vreinterpretq_s8_u32(vzip2q_u32(p, q)));
    to += 32;
  };
  put(columns.a, next.a), put(columns.b, next.b), put(columns.c, next.c), put(columns.d, next.d);
}
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr int kSquareOutputs = 4, kSquareRows = 1;

struct RowsOfSquare {
  int8x16_t row;
};
inline RowsOfSquare load_rows(const int8_t* a, const int8_t*) { return {vld1q_s8(a)}; }
template <int K>
inline Square multiply(Square sum, Bytes codes, const RowsOfSquare& rows) {
  return vdotq_laneq_s32(sum, codes, rows.row, K);
}
inline SquareF of_rows(float a, float) { return vdupq_n_f32(a); }
inline void store_for_outputs(float* to, F x) { store(to, x); }
inline void store_rows(float* a, float*, const SquareF (&s)[2]) {
  vst1q_f32(a, s[0]), vst1q_f32(a + 4, s[1]);
}
inline void store_operands(int8_t* to, Codes columns, Codes next, uint8_t zero) {
  const auto minus = [zero](uint8x16_t v) { return less(v, zero); };
  store_codes(reinterpret_cast<uint8_t*>(to), each<Codes>(columns, minus));
  store_codes(reinterpret_cast<uint8_t*>(to) + 64, each<Codes>(next, minus));
}
#endif

}  // namespace
}  // namespace CPU_VARIANT
