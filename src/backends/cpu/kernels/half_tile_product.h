// The product of many rows with codes, where a register has four sums and there are 32 of them (NEON). Half a
// tile and six rows are computed at once: 12 registers of integer sums, 12 of totals, 6 of rows and one of
// codes. A register of a row serves for 16 columns: instructions name the part that they multiply
// (variants/neon/squares.h). The sums are the same integers, so the bits are those of product.h.
#pragma once

#include "backends/cpu/kernels/product.h"

struct HalfTileRow {
  float unit[8];         // per block of 32, or the first is that of the block of 256
  float unit_sum[8];     // unit times the sum of the block's codes
  int32_t pair_sums[8];  // as in StagedRow
  int8_t codes[256];
};

struct HalfTileWeights {
  UnpackedTile tile;
  alignas(16) float scale[16][16 * kSquareRows], minimum[8][16 * kSquareRows];
  alignas(16) int8_t operands[256 / 8][8][16];
};

template <int Columns, bool UnitPerGroup, bool Minimums>
struct HalfTileProduct {
  using Staged = HalfTileProduct<32, true, true>;  // one many_rows() for all
  using Row = HalfTileRow;
  using Weights = HalfTileWeights;
  static constexpr int kRows = kStagedRows, kManyRows = 6, kFewRows = 4;
  static constexpr int kColumns = Columns;
  static constexpr bool kUnitPerGroup = UnitPerGroup;
  static constexpr DType x = UnitPerGroup ? DType::A8_32 : DType::A8_256;
  static_assert(kTilesTogether == 1);

  // The zero point of the codes is already subtracted (unpack_as).
  static void stage(const uint8_t* from, int32_t columns, int /*zero*/, Row& r) {
    constexpr gimbal::Activations layout = gimbal::activations_of(x);
    for (int32_t b = 0; b < columns / layout.block; b++, from += layout.bytes) {
      r.unit[b] = read<float>(from);
      if constexpr (UnitPerGroup && Minimums)
        r.unit_sum[b] = r.unit[b] * float(read<int32_t>(from + layout.sums));
      if constexpr (!UnitPerGroup && Minimums)
        for (int g = 0; g < 256 / Columns; g++)
          write(reinterpret_cast<uint8_t*>(r.pair_sums) + 2 * g, int16_t(-code_sum<Columns>(from, g)));
      __builtin_memcpy(r.codes + b * layout.block, from + layout.codes, size_t(layout.block));
    }
  }

  // Adds the columns' sums of the tile to the totals of M rows.
  template <int M>
  [[gnu::noinline]] static void product(const HalfTileWeights* w, const HalfTileRow* x, int32_t columns,
                                        float (*total)[16]) {
    alignas(16) float sums[M][16];
#pragma GCC unroll 1
    for (int first = 0; first < 16; first += 8) half<M>(*w, first, x, columns, sums);
    for (int m = 0; m < M; m++) {
      F acc = load(sums[m]);
      if constexpr (!UnitPerGroup) {
        const F unit = splat(x[m].unit[0]);
        acc = mul(acc, mul(load(w->tile.unit), unit));
        if constexpr (Minimums) {
          I sum = splat(int32_t(0));
          for (int i = 0; i < 128 / Columns; i++)
            sum = dot_pairs(sum, load(w->tile.minimum_pairs[i]), splat(x[m].pair_sums[i]));
          acc = fma(to_float(sum), mul(load(w->tile.minimum_unit), unit), acc);
        }
      }
      store(total[m], add(load(total[m]), acc));
    }
  }

 private:
  // Squares of eight outputs, squares of M rows, steps of 16 columns.
  static constexpr int kSquares = 8 / kSquareOutputs, kSteps = kSquareOutputs;
  static constexpr int rows_of(int m) { return kSquareRows * m; }

  template <int M, int K>
  [[gnu::always_inline]] static inline void steps(const int8_t* operands,
                                                  const RowsOfSquare (&rows)[M / kSquareRows],
                                                  Square (&sum)[M / kSquareRows][kSquares]) {
    if constexpr (K < kSteps) {
      for (int s = 0; s < kSquares; s++) {
        const Bytes codes = load_bytes(operands + 256 / kSteps * K + 16 * s);
        for (int m = 0; m < M / kSquareRows; m++) sum[m][s] = multiply<K>(sum[m][s], codes, rows[m]);
      }
      steps<M, K + 1>(operands, rows, sum);
    }
  }

  // The sums of eight outputs with M rows, over all columns.
  template <int M>
  [[gnu::always_inline]] static inline void half(const HalfTileWeights& w, int first, const HalfTileRow* x,
                                                 int32_t columns, float (*sums)[16]) {
    constexpr int kOfRows = M / kSquareRows;
    SquareF acc[kOfRows][kSquares];
    for (auto& of_row : acc)
      for (SquareF& a : of_row) a = no_total();
    const int8_t* operands = w.operands[0][first / kSquareOutputs];
    int at = 0, g = 0;
    do {
      Square sum[kOfRows][kSquares];
      for (auto& of_row : sum)
        for (Square& s : of_row) s = no_sums();
#pragma GCC unroll 1
      for (const int end = at + Columns; at < end; at += 16, operands += 256) {
        RowsOfSquare rows[kOfRows];
        for (int m = 0; m < kOfRows; m++)
          rows[m] = load_rows(x[rows_of(m)].codes + at, x[rows_of(m + 1) - 1].codes + at);
        steps<M, 0>(operands, rows, sum);
      }
      add_group<M>(w, first, x, g, sum, acc);
    } while (++g < columns / Columns);
    for (int m = 0; m < kOfRows; m++)
      store_rows(sums[rows_of(m)] + first, sums[rows_of(m + 1) - 1] + first, acc[m]);
  }

  template <int M>
  [[gnu::always_inline]] static inline void add_group(const HalfTileWeights& w, int first,
                                                      const HalfTileRow* x, int g,
                                                      const Square (&sum)[M / kSquareRows][kSquares],
                                                      SquareF (&acc)[M / kSquareRows][kSquares]) {
    for (int m = 0; m < M / kSquareRows; m++) {
      const int b = g * Columns / 32;
      const HalfTileRow &row = x[rows_of(m)], &last = x[rows_of(m + 1) - 1];
      const SquareF unit = UnitPerGroup ? of_rows(row.unit[b], last.unit[b]) : no_total();
      const SquareF unit_sum =
          UnitPerGroup && Minimums ? of_rows(row.unit_sum[b], last.unit_sum[b]) : no_total();
      for (int s = 0; s < kSquares; s++) {
        const int output = kSquareRows * (first + kSquareOutputs * s);
        const SquareF scale = of_outputs(w.scale[g] + output);
        acc[m][s] = fma(to_float(sum[m][s]), UnitPerGroup ? mul(scale, unit) : scale, acc[m][s]);
        if constexpr (UnitPerGroup && Minimums)
          acc[m][s] = fma(of_outputs(w.minimum[g] + output), unit_sum, acc[m][s]);
      }
    }
  }
};

// Rows: Rows32 or Rows256 of the format, W: its codes.
template <class Rows, class W>
void unpack_as(const uint8_t* tile, int32_t k, int32_t columns, HalfTileWeights& to) {
  Rows::unpack(tile, k, columns, to.tile);
  const int32_t n = columns - k < kChunk ? columns - k : kChunk;
  for (int32_t v = 0; v < n / 8; v++)
    store_operands(to.operands[v][0], load_codes(to.tile.codes + 128 * v),
                   load_codes(to.tile.codes + 128 * v + 64), uint8_t(W::unpacked_zero));
  for (int32_t g = 0; g < n / Rows::kColumns; g++) {
    store_for_outputs(to.scale[g], load(to.tile.scale[g]));
    if constexpr (Rows::Product::kUnitPerGroup && W::minimums)
      store_for_outputs(to.minimum[g], load(to.tile.minimum[g]));
  }
}
