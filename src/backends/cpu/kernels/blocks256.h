// Weights in blocks of 256 against a8_256. A block is a chunk. Scales inside a block are integers: a group of
// columns with one scale is an exact integer sum and one FMA with the scale; the block's sum is then
// multiplied by its units. Minimums are an exact integer sum, and one FMA a block.
#pragma once

#include "backends/cpu/kernels/choice_of_product.h"
#include "backends/cpu/kernels/codes.h"
#include "backends/cpu/kernels/memory.h"
#include "backends/cpu/kernels/planes.h"

// The source of the codes of 256 columns: E is an eighth of the block (32 columns), i the vector in it.
template <DType T>
constexpr auto planes_of() {
  constexpr Format F = format_of(T);
  if constexpr (F.shifts) return ShiftedTrits<T>();
  else if constexpr (F.levels != Levels::Plain && F.pairs)
    return NamedLevels<TwoPlanes<PairPlane<T>, BitPlane<T>, 2>, F.levels, F.zero>();
  else if constexpr (F.levels != Levels::Plain) return NamedLevels<NibblePlane<T>, F.levels, F.zero>();
  else if constexpr (F.doubled) return Doubled<NibblePlane<T>>();
  else if constexpr (F.nibbles && F.pairs) return TwoPlanes<NibblePlane<T>, PairPlane<T>, 4>();
  else if constexpr (F.nibbles && F.bits) return TwoPlanes<NibblePlane<T>, BitPlane<T>, 4>();
  else if constexpr (F.pairs && F.bits) return TwoPlanes<PairPlane<T>, BitPlane<T>, 2>();
  else if constexpr (F.nibbles) return OnePlane<NibblePlane<T>>();
  else return OnePlane<PairPlane<T>>();
}

template <DType T>
struct Weights256 : CodesOf<T>, decltype(planes_of<T>()) {
  static constexpr Format format = format_of(T);
  static constexpr gimbal::cpu::Parts256 parts = gimbal::cpu::parts256(T);
  static constexpr int columns = format.group;
  static constexpr bool scales = format.scales != Scales::OfBlock, two_streams = format.two_streams;
  // The scales (and minimums) of group g, of all 16 rows.
  static inline I scale(const uint8_t* b, int g) {
    const uint8_t* at = b + parts.scales;
    if constexpr (format.scales == Scales::Signed)
      return load_i8(reinterpret_cast<const int8_t*>(at) + 16 * g);
    else if constexpr (format.scales == Scales::Paired) return nibble<0>(load_u8(at + 16 * g));
    else if constexpr (format.scales == Scales::Odd) {
      constexpr int half = 128 / columns;
      const I two = load_u8(at + 16 * (g % half)), s = g < half ? nibble<0>(two) : nibble<4>(two);
      return add(add(s, s), splat(int32_t(1)));
    } else return load_u8(at + 16 * g);
  }
  static inline I minimum(const uint8_t* b, int g) {
    if constexpr (format.scales == Scales::Paired) return nibble<4>(load_u8(b + parts.scales + 16 * g));
    else return load_u8(b + parts.minimums + 16 * g);
  }
  // Of 32 columns, to be multiplied with the sums of their halves.
  static inline I minimum_pair(const uint8_t* b, int i) {
    if constexpr (columns == 16) return pairs(minimum(b, 2 * i), minimum(b, 2 * i + 1));
    else return load_u8_twice(b + parts.minimums + 16 * i);
  }
};

// The units of the 16 rows. Times a power of two they are the same numbers in f32.
template <DType T>
inline F unit(const uint8_t* units) {
  constexpr Format f = format_of(T);
  if constexpr (f.unit_divisor == 1) return HalfScale::scale(units);
  else return mul(HalfScale::scale(units), splat(1.f / f.unit_divisor));
}

template <class W>
inline F group_scale(const uint8_t* block, int g) {
  if constexpr (W::scales) return to_float(W::scale(block, g));
  else return splat(1.f);
}

template <class W>
struct OneRow256 {
  static constexpr gimbal::Activations x = gimbal::activations_of(W::x);
  static constexpr gimbal::cpu::Parts256 parts = gimbal::cpu::parts256(W::type);
  static constexpr int kStride = 8 / W::sharing;                           // from a strand to the next
  static constexpr int kInEighth = W::columns < 32 ? 32 / W::columns : 1;  // groups
  static constexpr int kGroups = 256 / W::columns;
  static constexpr int kLines = (parts.end + parts.head_step + 63) / 64;

  // The initial sum of group h of eighth e: the correction for the codes' zero point.
  template <int E>
  static inline I start(const uint8_t* a, int e, int h) {
    I sum = splat(int32_t(0));
    if constexpr (W::zero != 0) {
      constexpr uint32_t off = uint16_t(-(W::zero << W::place(E, W::most)));
      const uint32_t halves = W::columns == 16 ? (h ? off << 16 : off) : off | off << 16;
      sum = dot_pairs(sum, splat(int32_t(halves)), splat(read<int32_t>(a + x.sums + 4 * e)));
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
                        splat(read<int32_t>(a + x.codes + 32 * (e + S * kStride) + 4 * i)));
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
  // The sum of one block: `units` and `w` are its parts, `ahead` the address to prefetch.
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
        minimums = dot_pairs(minimums, W::minimum_pair(w, i), splat(read<int32_t>(a + x.sums + 4 * i)));
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
    for (int32_t b = 0; b < columns / 256; b++, a += x.bytes)
#pragma GCC unroll 1
      for (int i = 0; i < Tiles; i++)
        // Prefetches evenly through the tile, including its head.
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
  static constexpr int kColumns = W::columns;
  using Product = decltype(product_of<kColumns, W::most, false, W::minimums>());
  template <class Tile>
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, Tile& to) {
    unpack_as<Rows256, W>(tile, k, columns, to);
  }
  static void unpack(const uint8_t* tile, int32_t k, int32_t columns, UnpackedTile& to) {
    const uint8_t* w = tile + kLayout<W::type>.chunk_offset(columns, k);
    const uint8_t* units = tile + k / 256 * kLayout<W::type>.parts256.unit_step;
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
