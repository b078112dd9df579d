// The product of many rows with codes of 8 bits, on instruction sets without a dot product of bytes. A
// product of unsigned and signed bytes needs the codes' magnitudes and, for each row, the activations with
// the codes' signs. Products of 16-bit pairs need neither: codes and activations are widened once, for many
// products. The sums are the same integers, so the bits are those of product.h.
#pragma once

#include "backends/cpu/kernels/product.h"

struct WideRow {
  float unit[8];         // per block of 32, or the first is that of the block of 256
  int32_t pairs[2][64];  // of each four columns the first and third, and the second and fourth
};

struct WideTile {
  UnpackedTile tile;  // its scales and bytes
  alignas(64) int32_t pairs[2][64][16];
};

template <int Columns, bool UnitPerGroup>
struct WideProduct {
  using Staged = WideProduct<32, true>;  // one many_rows() for all
  using Row = WideRow;
  using Weights = WideTile;
  static constexpr int kRows = kStagedRows, kManyRows = kRowsAtOnce < 6 ? 6 : kRowsAtOnce;
  static constexpr int kColumns = Columns;
  static constexpr bool kUnitPerGroup = UnitPerGroup;
  static constexpr DType x = UnitPerGroup ? DType::A8_32 : DType::A8_256;

  // The zero point of the codes is already subtracted (unpack_wide).
  static void stage(const uint8_t* from, int32_t columns, int /*zero*/, Row& r) {
    constexpr gimbal::Activations layout = gimbal::activations_of(x);
    alignas(64) uint8_t codes[256];
    for (int32_t b = 0; b < columns / layout.block; b++, from += layout.bytes) {
      r.unit[b] = read<float>(from);
      __builtin_memcpy(codes + b * layout.block, from + layout.codes, size_t(layout.block));
    }
    for (int32_t k = 0; k < columns; k += 64) {
      const PairsOfBytes p = pairs_of_bytes<0>(load_codes(codes + k));
      store(r.pairs[0] + k / 4, p.first), store(r.pairs[1] + k / 4, p.second);
    }
  }

  // Adds the columns' sums of the tiles to the totals of M rows.
  template <int M>
  [[gnu::noinline]] static void product(const WideTile* w, const WideRow* x, int32_t columns,
                                        float (*total)[16]) {
    constexpr int T = kTilesTogether;
    F acc[T * M];
    for (F& a : acc) a = splat(0.f);
    int g = 0;
    do {
      I sum[T * M];
      for (I& s : sum) s = splat(int32_t(0));
      for (int half = 0; half < 2; half++)
        for (int v = 0; v < Columns / 4; v++) {
          I c[T];
          for (int t = 0; t < T; t++) c[t] = load(w[t].pairs[half][Columns / 4 * g + v]);
          for (int m = 0; m < M; m++) {
            const I a = splat(x[m].pairs[half][Columns / 4 * g + v]);
            for (int t = 0; t < T; t++) sum[t * M + m] = dot_pairs(sum[t * M + m], c[t], a);
          }
        }
      for (int t = 0; t < T; t++) {
        const F scale = load(w[t].tile.scale[g]);
        for (int m = 0; m < M; m++)
          acc[t * M + m] =
              fma(to_float(sum[t * M + m]),
                  UnitPerGroup ? mul(scale, splat(x[m].unit[g * Columns / 32])) : scale, acc[t * M + m]);
      }
    } while (++g < columns / Columns);
    for (int t = 0; t < T; t++)
      for (int m = 0; m < M; m++) {
        if constexpr (!UnitPerGroup)
          acc[t * M + m] = mul(acc[t * M + m], mul(load(w[t].tile.unit), splat(x[m].unit[0])));
        float* const to = total[t * kRows + m];
        store(to, add(load(to), acc[t * M + m]));
      }
  }
};

// Rows: Rows32 or Rows256 of the format, W: its codes.
template <class Rows, class W>
void unpack_as(const uint8_t* tile, int32_t k, int32_t columns, WideTile& to) {
  Rows::unpack(tile, k, columns, to.tile);
  const int32_t n = columns - k < kChunk ? columns - k : kChunk;
  for (int32_t v = 0; v < n / 4; v++) {
    const PairsOfBytes p = pairs_of_bytes<128>(load_codes(to.tile.codes + 64 * v));
    store(to.pairs[0][v], p.first), store(to.pairs[1][v], p.second);
  }
}
