// The matrix product for a few rows of x: several users, or the drafted
// tokens of one. Memory-bound as with one row: tiles are read once and
// in order. few_products.h computes a part of a tile.
#pragma once

#include "backends/cpu/kernels/few_products.h"

// A format's parameters for the loop over tiles, which is compiled once for all formats.
struct FewSteps {
  int64_t tile_bytes;
  int32_t block, block_bytes;  // of x
  int tiles, tiles_of_four;    // at once; with four rows or fewer
  // Of P::kFewest rows, of 4, of kFewTogether.
  void (*add_part[3])(const TilePart&, const uint8_t* const* rows, float (*total)[16]);
  F (*result)(const uint8_t* tile, const uint8_t* x, const float* total);  // as in RowSteps
};
template <class P>
constexpr FewSteps few_steps(int64_t tile_bytes) {
  constexpr gimbal::DTypeInfo x = gimbal::info(P::x);
  decltype(FewSteps::result) result = nullptr;
  if constexpr (requires { P::result; }) result = P::result;
  int of_four = P::kTiles;
  if constexpr (requires { P::kTilesOfFour; }) of_four = P::kTilesOfFour;
  return {tile_bytes,
          x.block,
          x.bytes,
          P::kTiles,
          of_four,
          {P::template add_part<P::kFewest>, P::template add_part<4>, P::template add_part<kFewTogether>},
          result};
}

[[gnu::noinline]] inline void few_rows(const CpuTask& t, int64_t begin, int64_t end, const FewSteps& steps) {
  alignas(64) float total[2][kMaxFewRows][16];
  const uint8_t* x[kMaxFewRows];
  const auto columns = int32_t(t.in[0]->dim[0]);
  const int64_t row_bytes = int64_t(columns) / steps.block * steps.block_bytes;
  // Groups are full: the last one is padded with copies of its last row.
  static_assert(kMaxFewRows % kFewTogether == 0);
  const int32_t full = (t.rows + kFewTogether - 1) / kFewTogether * kFewTogether;
  for (int32_t r = 0; r < full; r++) {
    const int32_t row = r < t.rows ? r : t.rows - 1;
    x[r] = t.x[1] + (t.row_list ? t.row_list[row] / t.x_share : row) * row_bytes;
  }
  // Two tiles at once come from the first and the second half: two memory streams.
  const int at_once = t.rows > 4 ? steps.tiles : steps.tiles_of_four;
  const int64_t half = (end - begin + at_once - 1) / at_once;
  for (int64_t first = begin; first < begin + half; first++) {
    // A last single tile is computed twice; the second sum is ignored.
    const int tiles = first + (at_once - 1) * half < end ? at_once : 1;
    TilePart p{{}, at_once, 0, 0, columns, true};
    for (int i = 0; i < 2; i++) p.tile[i] = t.x[0] + (first + (i < tiles ? i * half : 0)) * steps.tile_bytes;
    for (int i = 0; i < at_once; i++)
      for (int32_t r = 0; r < full; r++) store(total[i][r], splat(0.f));
    // A single group of rows processes a tile at once. Several groups alternate, so that they find its codes
    // in the first-level cache.
    for (const int32_t step = t.rows > kFewTogether ? 2 * kChunk : columns; p.k < columns; p.k = p.end) {
      p.end = columns - p.k < step ? columns : p.k + step;
      for (int32_t r = 0; r < t.rows;) {
        const int32_t left = t.rows - r, size = left > 4 ? 2 : left > kFewestTogether ? 1 : 0;
        p.first = r == 0;
        steps.add_part[size](p, x + r, total[0] + r);
        r += size == 2 ? kFewTogether : 4;
      }
    }
    for (int i = 0; i < tiles; i++)
      for (int32_t r = 0; r < t.rows; r++)
        put(t, first + i * half, t.row_list ? t.row_list[r] : r,
            steps.result ? steps.result(p.tile[i], x[r], total[i][r]) : load(total[i][r]));
  }
}
template <class W, class P>
void matmul_few(const CpuTask& t, int64_t begin, int64_t end) {
  few_rows(t, begin, end, few_steps<P>(kLayout<W::type>.tile_bytes(t.in[0]->dim[0])));
}
