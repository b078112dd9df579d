// The product by tiles of pairs (AMX-BF16): sixteen rows of x times sixteen outputs, 32 columns at once. Rows
// as they are staged are A tiles, unpacked weights are B tiles. A chunk's sum is added to the total as in
// exact rows. Subnormal numbers count as 0.
#pragma once

#include "backends/cpu/kernels/pairs.h"

struct ProductOfPairTiles : Pairs {
  using Staged = ProductOfPairTiles;
  static constexpr int kManyRows = 32, kFewRows = 16;

  // Tiles 0 to 3: sums, 4 and 5: x, 6 and 7: weights.
  template <int Groups, int T>
  static inline void multiply(const Row* x, const Weights* w, int32_t pair) {
    load_tile<4>(x[0].x + pair, sizeof(Row));
    load_tile<6>(w[0].columns[pair], 64);
    multiply_pairs<0, 4, 6>();
    if constexpr (T == 2) load_tile<7>(w[1].columns[pair], 64), multiply_pairs<1, 4, 7>();
    if constexpr (Groups == 2) {
      load_tile<5>(x[16].x + pair, sizeof(Row));
      multiply_pairs<2, 5, 6>();
      if constexpr (T == 2) multiply_pairs<3, 5, 7>();
    }
  }
  template <int Tile>
  static inline void add_to(float (*total)[16]) {
    alignas(64) float sum[16][16];
    store_tile<Tile>(sum, 64);
    for (int r = 0; r < 16; r++) store(total[r], add(load(total[r]), load(sum[r])));
  }

  template <int M>
  [[gnu::noinline]] static void product(const Weights* w, const Row* x, int32_t columns, float (*total)[16]) {
    constexpr int T = kTilesTogether, groups = M / 16;
    static_assert(T <= 2 && groups <= 2 && M % 16 == 0);
    zero_tile<0>(), zero_tile<1>(), zero_tile<2>(), zero_tile<3>();
    for (int32_t pair = 0; 2 * pair < columns; pair += kPairsTogether) multiply<groups, T>(x, w, pair);
    add_to<0>(total);
    if constexpr (T == 2) add_to<1>(total + kRows);
    if constexpr (groups == 2) {
      add_to<2>(total + 16);
      if constexpr (T == 2) add_to<3>(total + kRows + 16);
    }
  }
};

template <DType T>
void product_of_pairs(const CpuTask& t, int64_t begin, int64_t end) {
  TileConfig all;
  for (int tile = 0; tile < 8; tile++) all.shape(tile, 16, 64);
  configure(all);
  matmul_by_pairs<ProductOfPairTiles, T>(t, begin, end);
  release_tiles();
}
