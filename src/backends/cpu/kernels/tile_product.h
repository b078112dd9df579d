// The product of groups of rows of x with 16 outputs by tiles: Product of product.h with its integer sums
// made by tile registers. One product of tiles is a group of columns with one scale.
#pragma once

#include "backends/cpu/kernels/tiles.h"

// Meanings of the parameters: product.h. Without UnitPerGroup these are blocks of 256, else blocks of 32.
template <DType X, int Columns, bool Minimums>
struct TileProduct {
  static constexpr bool UnitPerGroup = X == DType::A8_32, kSumOfRow = X == DType::A8_ROW;
  static constexpr gimbal::Activations kX = gimbal::activations_of(X);
  static constexpr int kBlock = kX.block, kBlockBytes = kX.bytes;
  static constexpr int kGroups = kChunk / Columns, kBlocks = kChunk / kBlock;
  static constexpr int kTileBytes = Columns < 64 ? Columns : 64;  // of a row of x in a tile
  // The number of groups of columns that the tiles are ahead of the floats; both run at the same time.
  static constexpr int kTilesAhead = 8;

  // Of each block and row of x, side by side, so that an instruction can take them from memory.
  struct Activations {
    float unit[kSliceGroups][kBlocks][16], unit_sum[UnitPerGroup && Minimums ? kSliceGroups : 1][kBlocks][16];
  };
  alignas(64) int32_t sum[kTilesAhead][16][16];
  // Of two groups of rows in turn: sums of minimums times the low and the high bytes of the sums of x.
  alignas(64) int32_t minimum_sum[!UnitPerGroup && Minimums ? 2 : 1][2][16][16];

  // Tiles 0 to 3: sums, 4 and 5: x, 6 and 7: weights.
  static TileConfig shapes(int height) {
    TileConfig c;
    for (int tile = 0; tile < 4; tile++) c.shape(tile, height, 64);
    for (int tile = 4; tile < 6; tile++) c.shape(tile, height, kTileBytes);
    for (int tile = 6; tile < 8; tile++) c.shape(tile, kTileBytes / 4, 64);
    return c;
  }

  static void gather(const Groups& groups, int64_t x_offset, int32_t width, Activations& out) {
    for (int g = 0; g < groups.count; g++)
      for (int r = 0; r < 16; r++) {
        const uint8_t* x = groups.at(g, r) + x_offset;
        for (int b = 0; b < width / kBlock; b++, x += kBlockBytes) {
          const float unit = read<float>(x);
          out.unit[g][b][r] = unit;
          if constexpr (UnitPerGroup && Minimums)
            out.unit_sum[g][b][r] = unit * float(read<int32_t>(x + kX.sums));
        }
      }
  }

  static void prepare(TileWeights& w, int32_t width, int zero) {
    for (int i = 0; i < width / 4; i++)
      store_codes(w.level[i], less(load_codes(w.tile.codes + 64 * i), zero));
    if constexpr (!UnitPerGroup && Minimums)
      for (int i = 0; i < 8; i++) {
        // For two neighbouring sums of 16 columns. With groups of 32 both have the same minimum: one half of
        // a pair; the upper half is two bytes further on.
        auto* pair = reinterpret_cast<const uint8_t*>(w.tile.minimum_pairs[Columns == 16 ? i : i / 2]);
        I two = read<I>(pair + (Columns == 32 && i % 2 ? 2 : 0));
        if constexpr (Columns == 32) two = pairs(two, two);
        write(w.minimum_low[i], two);
        write(w.minimum_high[i], mul(two, splat(256)));
      }
  }

  // The sums of one group of columns into `to`.
  template <int T>
  static inline void multiply_columns(const uint8_t* x, int64_t stride, const uint8_t (*level)[64],
                                      int32_t (*to)[16]) {
    zero_tile<T>();
    for (int q = 0; q < Columns / kTileBytes; q++) {
      load_tile<4 + T % 2>(x + kTileBytes * q, stride);
      load_tile<6 + T % 2>(level + kTileBytes / 4 * q, 64);
      multiply_signed<T, 4 + T % 2, 6 + T % 2>();
    }
    store_tile<T>(to, 64);
  }
  static inline void multiply_minimums(const uint8_t* sums, int64_t stride, const TileWeights& w,
                                       int32_t (*to)[16][16]) {
    zero_tile<0>(), zero_tile<1>();
    for (int q = 0; q < 32 / kTileBytes; q++) {
      load_tile<4>(sums + kTileBytes * q, stride);
      load_tile<6>(w.minimum_low + kTileBytes / 4 * q, 64);
      load_tile<7>(w.minimum_high + kTileBytes / 4 * q, 64);
      multiply_unsigned_by_signed<0, 4, 6>();
      multiply_signed<1, 4, 7>();
    }
    store_tile<0>(to[0], 64), store_tile<1>(to[1], 64);
  }

  // The rows of x one by one, unrolled so that their sums stay in registers.
  template <int R>
  [[gnu::always_inline]] static inline void clear(F* acc) {
    if constexpr (R < 16) acc[R] = splat(0.f), clear<R + 1>(acc);
  }
  template <int R>
  [[gnu::always_inline]] static inline void add_columns(const int32_t (*sums)[16], F scale, F minimum,
                                                        const float* unit, const float* unit_sum, F* acc) {
    if constexpr (R < 16 && kSumOfRow) {  // integers in the floats' place
      acc[R] = __builtin_bit_cast(F, add(__builtin_bit_cast(I, acc[R]), load(sums[R])));
      add_columns<R + 1>(sums, scale, minimum, unit, unit_sum, acc);
    } else if constexpr (R < 16) {
      acc[R] = fma(to_float(load(sums[R])), UnitPerGroup ? mul(scale, splat(unit[R])) : scale, acc[R]);
      if constexpr (UnitPerGroup && Minimums) acc[R] = fma(minimum, splat(unit_sum[R]), acc[R]);
      add_columns<R + 1>(sums, scale, minimum, unit, unit_sum, acc);
    }
  }
  template <int R>
  [[gnu::always_inline]] static inline void add_totals(const TileWeights& w, const float* unit,
                                                       const int32_t (*minimums)[16][16], float (*total)[16],
                                                       const F* acc) {
    if constexpr (R < 16 && kSumOfRow) {
      write(total[R], add(read<I>(total[R]), __builtin_bit_cast(I, acc[R])));
      add_totals<R + 1>(w, unit, minimums, total, acc);
    } else if constexpr (R < 16) {
      F a = acc[R];
      if constexpr (!UnitPerGroup) {
        const F x_unit = splat(unit[R]);
        a = mul(a, mul(load(w.tile.unit), x_unit));
        if constexpr (Minimums) {  // they count against
          const I sum = add(mul(load(minimums[0][R]), splat(-1)), mul(load(minimums[1][R]), splat(-256)));
          a = fma(to_float(sum), mul(load(w.tile.minimum_unit), x_unit), a);
        }
      }
      store(total[R], add(load(total[R]), a));
      add_totals<R + 1>(w, unit, minimums, total, acc);
    }
  }

  // The output of a total.
  static F result(const uint8_t* tile, const uint8_t* x, const float* total) {
    if constexpr (kSumOfRow) return ProductOfSums<1>::result(tile, x, total);
    else return load(total);
  }

  void multiply(const Groups& groups, int64_t x_offset, int32_t width, const TileWeights& w,
                const Activations& x, float (*total)[16]) {
    const int columns = width / Columns, steps = columns * groups.count;  // groups of columns
    int ahead_group = 0, ahead = 0, group = 0, at = 0;                    // of the tiles, and of the floats
    F acc[16];
    clear<0>(acc);
    for (int step = 0; step < steps + kTilesAhead; step++) {
      int32_t(*place)[16] = sum[step % kTilesAhead];
      // First the floats: they use the values stored here.
      if (step >= kTilesAhead) {
        const int b = UnitPerGroup ? at * Columns / 32 : 0;
        add_columns<0>(place, load(w.tile.scale[at]), load(w.tile.minimum[b]), x.unit[group][b],
                       x.unit_sum[UnitPerGroup && Minimums ? group : 0][b], acc);
        if (++at == columns) {
          add_totals<0>(w, x.unit[group][0], minimum_sum[!UnitPerGroup && Minimums ? group % 2 : 0],
                        total + group * kGroupRows, acc);
          clear<0>(acc);
          at = 0, group++;
        }
      }
      if (step >= steps) continue;
      const uint8_t* block = groups.at(ahead_group) + x_offset;
      const uint8_t* codes =
          block + kX.codes + ahead * Columns / kBlock * kBlockBytes + ahead * Columns % kBlock;
      const uint8_t(*level)[64] = w.level + Columns / 4 * ahead;
      switch (step % 4) {  // other tiles in turn, so that none waits for the one before
        case 0: multiply_columns<0>(codes, groups.stride, level, place); break;
        case 1: multiply_columns<1>(codes, groups.stride, level, place); break;
        case 2: multiply_columns<2>(codes, groups.stride, level, place); break;
        default: multiply_columns<3>(codes, groups.stride, level, place);
      }
      if (++ahead == columns) {
        if constexpr (!UnitPerGroup && Minimums)
          multiply_minimums(block + kX.sums, groups.stride, w, minimum_sum[ahead_group % 2]);
        ahead = 0, ahead_group++;
      }
    }
  }
};

template <class W, class P, class Many>
void multiply_by_tiles(const CpuTask& t, int64_t begin, int64_t end) {
  multiply_by_tiles<P>(t, begin, end,
                       {kLayout<W::type>.tile_bytes(t.in[0]->dim[0]), Many::unpack, W::unpacked_zero});
}
template <DType T>
void matmul_by_tiles(const CpuTask& t, int64_t begin, int64_t end) {
  if constexpr (format_of(T).x == DType::A8_32) {
    using W = Weights32<T>;
    multiply_by_tiles<W, TileProduct<format_of(T).x, Rows32<W>::kColumns, W::minimums>, Rows32<W>>(t, begin,
                                                                                                   end);
  } else if constexpr (format_of(T).x == DType::A8_ROW) {
    using W = Weights32<T>;
    multiply_by_tiles<W, TileProduct<format_of(T).x, 64, false>, RowsOfSums<W>>(t, begin, end);
  } else {
    using W = Weights256<T>;
    multiply_by_tiles<W, TileProduct<format_of(T).x, W::columns, W::minimums>, Rows256<W>>(t, begin, end);
  }
}
