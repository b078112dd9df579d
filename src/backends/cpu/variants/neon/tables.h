// Tables of sums for products by table look-up, by tbl. Meanings: variants/baseline/tables.h.
#pragma once
#include <arm_neon.h>
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

constexpr int kTilesOfLookUp = 2;

// The lower and the upper eight rows, of columns 0 and 1 and of columns 2 and 3.
struct TableSums {
  int16x8_t a[2], b[2];
};
struct Tables {
  uint8x16_t low[4], high[4];
};
inline Tables load_tables(const uint8_t* p) {
  return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)},
          {vld1q_u8(p + 64), vld1q_u8(p + 80), vld1q_u8(p + 96), vld1q_u8(p + 112)}};
}
inline void store_table(uint8_t* tables, int j, I entries) {
  const uint8x16_t first = vreinterpretq_u8_s16(vmovn_high_s32(vmovn_s32(entries.a), entries.b)),
                   second = vreinterpretq_u8_s16(vmovn_high_s32(vmovn_s32(entries.c), entries.d));
  vst1q_u8(tables + 16 * j, vuzp1q_u8(first, second));
  vst1q_u8(tables + 64 + 16 * j, vuzp2q_u8(first, second));
}
inline Codes load_columns(const uint8_t* p) {
  const uint8x16x4_t c = vld4q_u8(p);
  return {c.val[0], c.val[1], c.val[2], c.val[3]};
}
inline void add_column(TableSums& sums, const Tables& tables, int j, uint8x16_t c) {
  const uint8x16_t l = vqtbl1q_u8(tables.low[j], c), h = vqtbl1q_u8(tables.high[j], c);
  sums.a[j / 2] = vaddq_s16(sums.a[j / 2], vreinterpretq_s16_u8(vzip1q_u8(l, h)));
  sums.b[j / 2] = vaddq_s16(sums.b[j / 2], vreinterpretq_s16_u8(vzip2q_u8(l, h)));
}
inline void add_entries(TableSums& sums, const Tables& tables, Codes c) {
  add_column(sums, tables, 0, c.a), add_column(sums, tables, 1, c.b);
  add_column(sums, tables, 2, c.c), add_column(sums, tables, 3, c.d);
}
inline void add_signed_column(TableSums& sums, const Tables& tables, int j, uint8x16_t c) {
  const int8x16_t n = vreinterpretq_s8_u8(c);
  const uint8x16_t index = vreinterpretq_u8_s8(vabsq_s8(n)), l = vqtbl1q_u8(tables.low[j], index),
                   h = vqtbl1q_u8(tables.high[j], index);
  const auto add = [](int16x8_t sum, uint8x16_t entries, int16x8_t number) {
    const int16x8_t negative = vshrq_n_s16(number, 15);
    return vaddq_s16(sum, vsubq_s16(veorq_s16(vreinterpretq_s16_u8(entries), negative), negative));
  };
  sums.a[j / 2] = add(sums.a[j / 2], vzip1q_u8(l, h), vmovl_s8(vget_low_s8(n)));
  sums.b[j / 2] = add(sums.b[j / 2], vzip2q_u8(l, h), vmovl_high_s8(n));
}
inline void add_signed_entries(TableSums& sums, const Tables& tables, Codes c) {
  add_signed_column(sums, tables, 0, c.a), add_signed_column(sums, tables, 1, c.b);
  add_signed_column(sums, tables, 2, c.c), add_signed_column(sums, tables, 3, c.d);
}
inline Codes sum_of_codes(Codes x, Codes y) {
  return each<Codes>(x, y, [](auto p, auto q) { return vaddq_u8(p, q); });
}
inline I widen(TableSums sums) {
  return {vaddl_s16(vget_low_s16(sums.a[0]), vget_low_s16(sums.a[1])), vaddl_high_s16(sums.a[0], sums.a[1]),
          vaddl_s16(vget_low_s16(sums.b[0]), vget_low_s16(sums.b[1])), vaddl_high_s16(sums.b[0], sums.b[1])};
}

}  // namespace
}  // namespace CPU_VARIANT
