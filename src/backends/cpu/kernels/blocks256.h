// Weights in blocks of 256 against a8_256: f32 scale, 256 codes, 16 i16 sums of 16 codes. A block is a chunk.
// Scales inside a block are integers: a group of columns with one scale is an exact integer sum and one FMA
// with the scale; the block's sum is then multiplied by its units. Minimums are an exact integer sum, and one
// FMA a block.
#pragma once

#include "backends/cpu/kernels/blocks32.h"
#include "backends/cpu/kernels/memory.h"
#include "backends/cpu/kernels/planes.h"

// The scales (and minimums) of group g of `Columns` columns: all 16 rows as integers, or one row's.
template <DType T, int Columns>
struct SignedScales {
  static constexpr int columns = Columns;
  static constexpr bool scales = true, minimums = false;
  static constexpr int at = gimbal::cpu::parts256(T).scales;
  static inline I scale(const uint8_t* b, int g) {
    return load_i8(reinterpret_cast<const int8_t*>(b) + at + 16 * g);
  }
  static inline int scale(const uint8_t* b, int g, int lane) { return int8_t(b[at + 16 * g + lane]); }
};
template <DType T>
struct ScalesAndMinimums {
  static constexpr int columns = 32;
  static constexpr bool scales = true, minimums = true;
  static constexpr gimbal::cpu::Parts256 at = gimbal::cpu::parts256(T);
  static inline I scale(const uint8_t* b, int g) { return load_u8(b + at.scales + 16 * g); }
  static inline int scale(const uint8_t* b, int g, int lane) { return b[at.scales + 16 * g + lane]; }
  static inline I minimum(const uint8_t* b, int g) { return load_u8(b + at.minimums + 16 * g); }
  static inline int minimum(const uint8_t* b, int g, int lane) { return b[at.minimums + 16 * g + lane]; }
  // Of 32 columns, to be multiplied with the sums of their halves.
  static inline I minimum_pair(const uint8_t* b, int i) { return load_u8_twice(b + at.minimums + 16 * i); }
};
// Of codebook formats: 2 s + 1, two to a byte.
template <DType T, int Columns>
struct OddScales {
  static constexpr int columns = Columns, half = 128 / Columns;
  static constexpr bool scales = true, minimums = false;
  static constexpr int at = gimbal::cpu::parts256(T).scales;
  static inline I scale(const uint8_t* b, int g) {
    const I two = load_u8(b + at + 16 * (g % half)), s = g < half ? nibble<0>(two) : nibble<4>(two);
    return add(add(s, s), splat(int32_t(1)));
  }
  static inline int scale(const uint8_t* b, int g, int lane) {
    return 2 * (b[at + 16 * (g % half) + lane] >> (g < half ? 0 : 4) & 15) + 1;
  }
};
struct NoScales {  // but that of the whole block
  static constexpr int columns = 256;
  static constexpr bool scales = false, minimums = false;
};

struct Q2_K : OnePlane<PairPlane<DType::Q2_K>>, Narrow<0, 3> {
  static constexpr DType type = DType::Q2_K, x = DType::A8_256;
  static constexpr int columns = 16, at = gimbal::cpu::parts256(type).scales;
  static constexpr bool scales = true, minimums = true;
  static inline I scale(const uint8_t* b, int g) { return nibble<0>(load_u8(b + at + 16 * g)); }
  static inline int scale(const uint8_t* b, int g, int lane) { return b[at + 16 * g + lane] & 15; }
  static inline I minimum(const uint8_t* b, int g) { return nibble<4>(load_u8(b + at + 16 * g)); }
  static inline int minimum(const uint8_t* b, int g, int lane) { return b[at + 16 * g + lane] >> 4; }
  static inline I minimum_pair(const uint8_t* b, int i) {
    return pairs(minimum(b, 2 * i), minimum(b, 2 * i + 1));
  }
};
struct Q3_K : TwoPlanes<PairPlane<DType::Q3_K>, BitPlane<DType::Q3_K>, 2>,
              Narrow<4, 7>,
              SignedScales<DType::Q3_K, 16> {
  static constexpr DType type = DType::Q3_K, x = DType::A8_256;
};
struct Q4_K : OnePlane<NibblePlane<DType::Q4_K>>, Narrow<0, 15>, ScalesAndMinimums<DType::Q4_K>, TwoStreams {
  static constexpr DType type = DType::Q4_K, x = DType::A8_256;
};
struct Q5_K : TwoPlanes<NibblePlane<DType::Q5_K>, BitPlane<DType::Q5_K>, 4>,
              Narrow<0, 31>,
              ScalesAndMinimums<DType::Q5_K>,
              TwoStreams {
  static constexpr DType type = DType::Q5_K, x = DType::A8_256;
};
struct Q6_K : TwoPlanes<NibblePlane<DType::Q6_K>, PairPlane<DType::Q6_K>, 4>,
              Narrow<32, 63>,
              SignedScales<DType::Q6_K, 16>,
              TwoStreams {
  static constexpr DType type = DType::Q6_K, x = DType::A8_256;
};
struct IQ4_XS : Wide, SignedScales<DType::IQ4_XS, 32> {
  static constexpr DType type = DType::IQ4_XS, x = DType::A8_256;
  using Plane = NibblePlane<type>;
  static constexpr int sharing = Plane::sharing;
  static constexpr int place(int, int) { return 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return lookup(Plane::codes<E, 0>(b, i), kNonLinearTable.entry);
  }
  static inline int code(const uint8_t* b, int lane, int k) { return Plane::code(b, lane, k); }
  static inline int level(int code) { return kNonLinear[code]; }
};
// Ternary: tq1_0 becomes tq2_0 when it is packed; i2_s has another unit.
template <DType T>
struct Ternary : OnePlane<PairPlane<T>>, Narrow<1, 2>, NoScales {
  static constexpr DType type = T, x = DType::A8_256;
};
using TQ2_0 = Ternary<DType::TQ2_0>;
using I2_S = Ternary<DType::I2_S>;

// The codebook formats: codes of levels (layout.h). The sum of a block stays below 62 * 31 * 127 * 256 <
// 2^26.
constexpr int8_t kLevelsIQ2[16] = {8, 25, 43, 0, -8, -25, -43, 0};
constexpr int8_t kLevelsIQ3_XXS[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
constexpr Table16 kTableIQ2(kLevelsIQ2, 43), kTableIQ3_XXS(kLevelsIQ3_XXS, 62);

// Codes that name a level, kept as level + Zero.
template <DType T, class Plane, int Columns, const int8_t (&Levels)[16], const Table16& Table, int Zero>
struct NamedLevels : Narrow<Zero, 2 * Zero>, OddScales<T, Columns> {
  static constexpr DType type = T, x = DType::A8_256;
  static constexpr int sharing = Plane::sharing;
  static constexpr int place(int, int) { return 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return lookup(Plane::template codes<E, 0>(b, i), Table.entry);
  }
  static inline int code(const uint8_t* b, int lane, int k) { return Plane::code(b, lane, k); }
  static inline int level(int code) { return Levels[code]; }
};
template <DType T, int Columns>
using LevelsIQ2 = NamedLevels<T, TwoPlanes<PairPlane<T>, BitPlane<T>, 2>, Columns, kLevelsIQ2, kTableIQ2, 43>;
using IQ2_XXS = LevelsIQ2<DType::IQ2_XXS, 32>;
using IQ2_XS = LevelsIQ2<DType::IQ2_XS, 16>;  // and iq2_s
using IQ3_XXS =
    NamedLevels<DType::IQ3_XXS, NibblePlane<DType::IQ3_XXS>, 32, kLevelsIQ3_XXS, kTableIQ3_XXS, 62>;

// Twice the nibble is the level + 15.
struct IQ3_S : Narrow<15, 30>, OddScales<DType::IQ3_S, 32> {
  static constexpr DType type = DType::IQ3_S, x = DType::A8_256;
  using Plane = NibblePlane<type>;
  static constexpr int sharing = Plane::sharing;
  static constexpr int place(int e, int most) { return Plane::from(e) > 0 && most << 3 <= kMostCode ? 3 : 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return Plane::codes<E, To + 1>(b, i);
  }
  static inline int code(const uint8_t* b, int lane, int k) { return 2 * Plane::code(b, lane, k); }
};

// 8 trit + shift + 9: the pair in bits 3 and 4, the shift in bit 1.
template <DType T, int Columns>
struct ShiftedTrits : Narrow<9, 18>, OddScales<T, Columns> {
  static constexpr DType type = T, x = DType::A8_256;
  using Plane = PairPlane<T>;
  static constexpr int sharing = Plane::sharing, at = gimbal::cpu::parts256(T).shifts;
  static constexpr int place(int, int) { return 0; }
  template <int E, int To = 0>
  static inline Codes codes(const uint8_t* b, int i) {
    return either(Plane::template codes<E, 3>(b, i), field<E, 1, 1>(spread(load_codes(b + at), i / 2)));
  }
  static inline int code(const uint8_t* b, int lane, int k) {
    return Plane::code(b, lane, k) << 3 | (b[at + 4 * lane + k / 8 % 4] >> (k / 32) & 1) << 1;
  }
};
using IQ1_S = ShiftedTrits<DType::IQ1_S, 32>;
using IQ1_M = ShiftedTrits<DType::IQ1_M, 16>;

// The units of the 16 rows, or of one. Times a power of two they are the same numbers in f32.
template <DType T>
inline F unit(const uint8_t* units) {
  constexpr gimbal::cpu::Parts256 p = gimbal::cpu::parts256(T);
  if constexpr (p.float_units) return load(reinterpret_cast<const float*>(units));
  else if constexpr (p.unit_factor == 1) return HalfScale::scale(units);
  else return mul(HalfScale::scale(units), splat(p.unit_factor));
}
template <DType T>
inline float unit(const uint8_t* units, int lane) {
  constexpr gimbal::cpu::Parts256 p = gimbal::cpu::parts256(T);
  if constexpr (p.float_units) return read<float>(units + 4 * lane);
  else return HalfScale::scale(units, lane) * p.unit_factor;
}

template <class W>
inline F group_scale(const uint8_t* block, int g) {
  if constexpr (W::scales) return to_float(W::scale(block, g));
  else return splat(1.f);
}

template <class W>
struct OneRow256 {
  static constexpr gimbal::cpu::Parts256 parts = gimbal::cpu::parts256(W::type);
  static constexpr int kStride = 8 / W::sharing;                           // from a strand to the next
  static constexpr int kInEighth = W::columns < 32 ? 32 / W::columns : 1;  // groups
  static constexpr int kGroups = 256 / W::columns;
  static constexpr int kLines = (parts.end + parts.head_step + 63) / 64;

  // Where the sum of group h of eighth e begins: at what the codes' zero point takes off.
  template <int E>
  static inline I start(const uint8_t* a, int e, int h) {
    I sum = splat(int32_t(0));
    if constexpr (W::zero != 0) {
      constexpr uint32_t off = uint16_t(-(W::zero << W::place(E, W::most)));
      const uint32_t halves = W::columns == 16 ? (h ? off << 16 : off) : off | off << 16;
      sum = dot_pairs(sum, splat(int32_t(halves)), splat(read<int32_t>(a + 260 + 4 * e)));
    }
    return sum;
  }

  // The eighths E, E + kStride, ... of a block, `sharing` strands: e is E, or where a piece of code is for
  // all eighths, any. Strand 0, then the rest.
  template <int E, int S>
  static inline void begin(const uint8_t* a, int e, int h, I* part) {
    if constexpr (S < W::sharing) {
      constexpr int later = S * kStride;
      const I first = start<E + later>(a, e + later, h);
      part[S] = W::columns < 256 || e == 0 ? first : add(part[S], first);
      begin<E, S + 1>(a, e, h, part);
    }
  }
  template <int E, int S>
  static inline void step(const uint8_t* block, const uint8_t* a, int e, int i, I* part) {
    if constexpr (S < W::sharing) {
      constexpr int now = E + S * kStride;
      part[S] = W::step(part[S], W::template codes<now, W::place(now, W::most)>(block, i),
                        splat(read<int32_t>(a + 4 + 32 * (e + S * kStride) + 4 * i)));
      step<E, S + 1>(block, a, e, i, part);
    }
  }
  template <int E, int S>
  static inline void end(int e, int h, const I* part, I* sums) {
    if constexpr (S < W::sharing) {
      const I sum = shift_right<W::place(E + S * kStride, W::most)>(part[S]);
      if constexpr (W::columns < 256) sums[(e + S * kStride) * kInEighth + h] = sum;
      else sums[0] = S == 0 ? sum : add(sums[0], sum);
      end<E, S + 1>(e, h, part, sums);
    }
  }
  template <int E>
  static inline void eighth(const uint8_t* block, const uint8_t* ahead, const uint8_t* a, int e, I* part,
                            I* sums) {
    for (int h = 0; h < kInEighth; h++) {
      begin<E, 0>(a, e, h, part);
      for (int i = h * 8 / kInEighth; i < (h + 1) * 8 / kInEighth; i++) {
        fetch_lines(ahead, kLines * (8 * e + i) / (8 * kStride), kLines * (8 * e + i + 1) / (8 * kStride));
        step<E, 0>(block, a, e, i, part);
      }
      if (W::columns < 256 || e + 1 == kStride) end<E, 0>(e, h, part, sums);
    }
  }
  template <int E>
  static inline void eighths(const uint8_t* block, const uint8_t* ahead, const uint8_t* a, I* part, I* sums) {
    if constexpr (E < kStride) {
      eighth<E>(block, ahead, a, E, part, sums);
      eighths<E + 1>(block, ahead, a, part, sums);
    }
  }
  // Of one block: `units` of it, `w` the rest, `ahead` what to ask for.
  static inline F block(const uint8_t* units, const uint8_t* w, const uint8_t* ahead, const uint8_t* a) {
    I part[W::sharing], sums[kGroups];
    eighths<0>(w, ahead, a, part, sums);
    F groups = splat(0.f);
    for (int g = 0; g < kGroups; g++) groups = fma(to_float(sums[g]), group_scale<W>(w, g), groups);
    const float x_unit = read<float>(a);
    F acc = mul(groups, mul(unit<W::type>(units), splat(x_unit)));
    if constexpr (W::minimums) {
      I minimums = splat(int32_t(0));
      for (int i = 0; i < 8; i++)
        minimums = dot_pairs(minimums, W::minimum_pair(w, i), splat(read<int32_t>(a + 260 + 4 * i)));
      acc = fma(to_float(minimums), mul(HalfScale::scale(units + 32), splat(-x_unit)), acc);
    }
    return acc;
  }
  // Tiles side by side, block by block.
  template <int Tiles>
  static inline void tiles(const uint8_t* const (&tile)[Tiles], const uint8_t* a, int32_t columns,
                           F (&total)[Tiles]) {
    const int64_t head = gimbal::cpu::head_bytes(parts, columns / 256);
    for (F& t : total) t = splat(0.f);
    for (int32_t b = 0; b < columns / 256; b++, a += 292)
#pragma GCC unroll 1
      for (int i = 0; i < Tiles; i++)
        // What is asked for ahead goes through the tile evenly, its head included.
        total[i] = add(total[i], block(tile[i] + b * parts.unit_step, tile[i] + head + b * parts.end,
                                       tile[i] + b * (parts.end + parts.head_step), a));
  }
  static inline F tile(const uint8_t* tile, const uint8_t* a, int32_t columns) {
    F total[1];
    tiles<1>({tile}, a, columns, total);
    return total[0];
  }
};

// Loops stay loops: this is a small part of the work, and there is one for each format.
template <class W, int E>
inline void unpack_eighths(const uint8_t* block, uint8_t* to) {
  if constexpr (E < 8) {
#pragma GCC unroll 1
    for (int i = 0; i < 8; i++) store_codes(to + 64 * i, W::template codes<E>(block, i));
    unpack_eighths<W, E + 1>(block, to + 512);
  }
}

template <class W>
struct Rows256 {
  using Product = ::CPU_VARIANT::Product<W::columns, product_steps(W::most), false, W::minimums>;
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, UnpackedTile& to) {
    const uint8_t* w = tile + gimbal::cpu::chunk_offset(W::type, columns, k);
    const uint8_t* units = tile + k / 256 * gimbal::cpu::parts256(W::type).unit_step;
    store(to.unit, unit<W::type>(units));
#pragma GCC unroll 1
    for (int g = 0; g < 256 / W::columns; g++) store(to.scale[g], group_scale<W>(w, g));
    if constexpr (W::minimums) {
      store(to.minimum_unit, HalfScale::scale(units + 32));
#pragma GCC unroll 1
      for (int i = 0; i < 128 / W::columns; i++)
        store(to.minimum_pairs[i], pairs(W::minimum(w, 2 * i), W::minimum(w, 2 * i + 1)));
    }
    to.codes = to.bytes;
    unpack_eighths<W, 0>(w, to.bytes);
  }
};

// One row of a packed matrix as numbers: the same as tensor/quant.h decodes.
template <class W>
inline void blocks256_row(const uint8_t* tile, int lane, int32_t columns, float* y) {
  constexpr gimbal::cpu::Parts256 parts = gimbal::cpu::parts256(W::type);
  const uint8_t *units = tile, *w = tile + gimbal::cpu::head_bytes(parts, columns / 256);
  for (int32_t b = 0; b < columns / 256; b++, units += parts.unit_step, w += parts.end, y += 256) {
    const float row_unit = unit<W::type>(units, lane);
    for (int k = 0; k < 256; k++) {
      const int g = k / W::columns;
      float scale = row_unit;
      if constexpr (W::scales) scale = row_unit * float(W::scale(w, g, lane));
      y[k] = scale * float(W::level(W::code(w, lane, k)));
      if constexpr (W::minimums)
        y[k] = y[k] - HalfScale::scale(units + 32, lane) * float(W::minimum(w, g, lane));
    }
  }
}
