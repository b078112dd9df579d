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
  // The tiles are so many groups of columns ahead of the floats: one for each tile of sums.
  static constexpr int kTilesAhead = 4;

  // A slice of x for some columns, so that tiles and instructions can take it from memory.
  struct Staged {
    // Of each group of rows, and in it of each group of columns, the 16 rows: a tile of x lies in one piece,
    // on lines of its own. Where they lie in x, every second row of a tile would cross a line.
    uint8_t codes[kSliceGroups * kGroups][16][Columns];
    // Of each block of columns the rows side by side.
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

  static void stage(const Groups& groups, int64_t x_offset, int32_t width, Staged& out) {
    const int columns = width / Columns;
    for (int g = 0; g < groups.count; g++)
      for (int r = 0; r < 16; r++) {
        const uint8_t* x = groups.at(g, r) + x_offset;
        for (int b = 0; b < width / kBlock; b++, x += kBlockBytes) {
          const float unit = read<float>(x);
          out.unit[g][b][r] = unit;
          if constexpr (UnitPerGroup && Minimums)
            out.unit_sum[g][b][r] = unit * float(read<int32_t>(x + kX.sums));
          for (int c = 0; c < kBlock / Columns; c++)
            __builtin_memcpy(out.codes[g * columns + b * (kBlock / Columns) + c][r],
                             x + kX.codes + c * Columns, Columns);
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
  static inline void multiply_columns(const uint8_t (*x)[Columns], const uint8_t (*level)[64],
                                      int32_t (*to)[16]) {
    zero_tile<T>();
    for (int q = 0; q < Columns / kTileBytes; q++) {
      load_tile<4 + T % 2>(*x + kTileBytes * q, Columns);
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

  // Where the tiles, or the floats, are: the group of rows, and in it the group of columns.
  struct Place {
    int group = 0, column = 0;
    bool next(int columns) {  // the group of rows is complete
      if (++column < columns) return false;
      column = 0, group++;
      return true;
    }
  };

  void multiply(const Groups& groups, int64_t x_offset, int32_t width, const TileWeights& w, const Staged& x,
                float (*total)[16]) {
    const int columns = width / Columns, steps = columns * groups.count;
    Place tiles, floats;
    F acc[16];
    clear<0>(acc);
    for (int step = 0; step < steps + kTilesAhead; step += kTilesAhead) {
      this->step<0>(groups, x_offset, columns, step, steps, w, x, tiles, floats, acc, total);
      this->step<1>(groups, x_offset, columns, step + 1, steps, w, x, tiles, floats, acc, total);
      this->step<2>(groups, x_offset, columns, step + 2, steps, w, x, tiles, floats, acc, total);
      this->step<3>(groups, x_offset, columns, step + 3, steps, w, x, tiles, floats, acc, total);
    }
  }

  // The floats of a group of columns, then the tiles of a later one, whose sums take the place that the
  // floats have read. T: the tile of sums; another one in each step, so that none waits for the one before.
  template <int T>
  [[gnu::always_inline]] inline void step(const Groups& groups, int64_t x_offset, int columns, int step,
                                          int steps, const TileWeights& w, const Staged& x, Place& tiles,
                                          Place& floats, F* acc, float (*total)[16]) {
    if (step >= kTilesAhead && step < steps + kTilesAhead) {
      const int b = UnitPerGroup ? floats.column * Columns / 32 : 0, g = floats.group;
      add_columns<0>(sum[T], load(w.tile.scale[floats.column]), load(w.tile.minimum[b]), x.unit[g][b],
                     x.unit_sum[UnitPerGroup && Minimums ? g : 0][b], acc);
      if (floats.next(columns)) {
        add_totals<0>(w, x.unit[g][0], minimum_sum[!UnitPerGroup && Minimums ? g % 2 : 0],
                      total + g * kGroupRows, acc);
        clear<0>(acc);
      }
    }
    if (step >= steps) return;
    multiply_columns<T>(x.codes[step], w.level + Columns / 4 * tiles.column, sum[T]);
    const int g = tiles.group;
    if (tiles.next(columns))
      if constexpr (!UnitPerGroup && Minimums)
        multiply_minimums(groups.at(g) + x_offset + kX.sums, groups.stride, w, minimum_sum[g % 2]);
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
