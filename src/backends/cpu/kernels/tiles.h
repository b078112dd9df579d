// The matrix product by tiles, for prompts: sixteen rows of x times sixteen outputs at once, straight from
// the layouts that the other kernels read (a vector of codes, four columns of sixteen outputs, is a row of a
// B tile). Tiles make the exact integer sums only. What follows is the same float operations in the same
// order as in product.h, so the bits are the same.
//
// Per chunk of 256 columns and 16 outputs the weights are unpacked once to signed bytes, so the following
// steps need no zero point; then they are multiplied with all rows of x, which kTilesAtOnce such pieces of
// weights share once they are staged. P, the product of a kind of blocks
// (tile_product.h), is the large part of the code, and compiled once for the formats that share it.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/product.h"

constexpr int kGroupRows = 16;    // of x: those of a tile
constexpr int kSliceGroups = 16;  // groups whose sums are kept while the columns pass by

inline int32_t smaller(int64_t a, int64_t b) { return int32_t(a < b ? a : b); }

// A slice of the rows of x, in groups. The last group ends with the last row, so it may share rows with the
// one before it: these are computed twice, alike.
struct Groups {
  const uint8_t* x;
  int64_t stride;  // bytes from row to row
  int32_t rows;    // of x in all
  int32_t height;  // of a group: 16, or all rows if there are fewer
  int32_t first, count;

  int32_t row(int group) const { return smaller((first + group) * kGroupRows, rows - height); }
  const uint8_t* at(int group) const { return x + row(group) * stride; }
  // The row at a place of a group; places after the last row repeat it.
  const uint8_t* at(int group, int place) const {
    return x + (row(group) + smaller(place, height - 1)) * stride;
  }
};

// Weights for tiles: an UnpackedTile whose codes have their zero point subtracted, and the minimums of a
// block of 256 for the low and the high bytes of the sums of x.
struct TileWeights {
  UnpackedTile tile;
  alignas(64) uint8_t level[64][64];
  alignas(64) uint8_t minimum_low[8][64], minimum_high[8][64];
};

// Memory serves the next weights while these are multiplied.
inline void fetch(const uint8_t* p, int64_t bytes) {
  for (int64_t at = 0; at <= bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
}

template <class P>
__attribute__((noinline)) void multiply_by_tiles(const CpuTask& t, int64_t begin, int64_t end,
                                                 const TileSource<UnpackedTile>& source) {
  if (t.rows < 1) return;
  const auto columns = int32_t(t.in[0]->dim[0]);
  Groups groups{t.x[1], columns / P::kBlock * int64_t(P::kBlockBytes), t.rows, smaller(t.rows, kGroupRows), 0,
                0};
  P product;
  TileWeights weights;
  alignas(64) typename P::Staged x;
  alignas(64) float total[kTilesAtOnce][kSliceGroups * kGroupRows][16];
  // The rows that a lower tile does not write are read, too.
  __builtin_memset(&product, 0, sizeof product);
  configure(P::shapes(groups.height));
  for (; groups.first * kGroupRows < t.rows; groups.first += kSliceGroups) {
    groups.count = smaller((t.rows + kGroupRows - 1) / kGroupRows - groups.first, kSliceGroups);
    for (int64_t first = begin; first < end; first += kTilesAtOnce) {
      const int units = smaller(end - first, kTilesAtOnce);
      __builtin_memset(total, 0, size_t(units) * sizeof *total);
      for (int32_t k = 0; k < columns; k += kChunk) {
        const int32_t width = smaller(columns - k, kChunk);
        const int64_t x_offset = k / P::kBlock * int64_t(P::kBlockBytes);
        P::stage(groups, x_offset, width, x);
        for (int u = 0; u < units; u++) {
          source.unpack(t.x[0] + (first + u) * source.tile_bytes, k, columns, weights.tile);
          P::prepare(weights, width, source.zero);
          fetch(t.x[0] + (first + (u + 1 < units ? u + 1 : 0)) * source.tile_bytes +
                    source.tile_bytes * (u + 1 < units ? k : k + kChunk) / columns,
                source.tile_bytes * width / columns);
          product.multiply(groups, x_offset, width, weights, x, total[u]);
        }
      }
      // A row's outputs follow each other, on one page of memory.
      for (int g = 0; g < groups.count; g++)
        for (int r = 0; r < groups.height; r++)
          for (int u = 0; u < units; u++)
            put(t, first + u, groups.row(g) + r,
                P::result(t.x[0] + (first + u) * source.tile_bytes, groups.at(g, r),
                          total[u][kGroupRows * g + r]));
    }
  }
  release_tiles();
}
