// The matrix product. A work item is a tile of 16 outputs, for all rows of x. One lane computes one output,
// so every instruction set adds the same numbers in the same order. Rows of x share the unpacked weights but
// no sums, so the bits do not depend on the number of rows.
//
// One row (generation) is memory-bound: it reads the packed weights once, with code for each format. Many
// rows (prompts) are compute-bound: 256 columns of a tile are unpacked to bytes in the first-level cache and
// multiplied with dozens of rows, by the same code for all formats (product.h).
#pragma once

#include "backends/cpu/kernels/memory.h"

inline CpuWork matmul_work(const CpuTask& t) {
  if (t.rows < 1) return {0, 0};  // no logits are requested in this step
  return {(t.in[0]->dim[1] + 15) / 16, 2.0 * double(t.in[0]->dim[0] * t.in[0]->dim[1]) * t.rows};
}

template <DType T>
constexpr gimbal::cpu::Layout kLayout = gimbal::cpu::layout_of(T);

template <class W>
inline const uint8_t* tile_at(const CpuTask& t, int64_t unit) {
  return t.x[0] + unit * kLayout<W::type>.tile_bytes(t.in[0]->dim[0]);
}
// Row `row` of x from column k on, at a block boundary.
template <class W>
inline const uint8_t* activations_at(const CpuTask& t, int64_t row, int32_t k = 0) {
  constexpr gimbal::DTypeInfo x = gimbal::info(W::x);
  return t.x[1] + (row * t.in[0]->dim[0] + k) / x.block * x.bytes;
}

// Stores the outputs of a tile that also contains outputs of another matrix.
[[gnu::noinline]] inline void put_inside(const CpuTask& t, int64_t row, int32_t first, int32_t n, F total) {
  float value[16];
  store(value, total);
  auto* y = reinterpret_cast<float*>(t.y) + row * t.in[0]->dim[1];
  for (int32_t i = first < 0 ? -first : 0; i < n; i++)
    y[first + i] = t.op->inputs == 3 ? value[i] + read<float>(t.x[2] + 4 * (first + i)) : value[i];
}
// Adds the bias and stores the outputs; the last tile may have fewer than 16.
inline void put(const CpuTask& t, int64_t unit, int64_t row, F total) {
  const int32_t outputs = int32_t(t.in[0]->dim[1]), first = int32_t(unit) * 16 - t.shift,
                n = outputs - first < 16 ? outputs - first : 16;
  if (t.shift) return put_inside(t, row, first, n, total);
  if (t.op->inputs == 3) total = add(total, load_part(reinterpret_cast<const float*>(t.x[2]) + first, n));
  store_part(reinterpret_cast<float*>(t.y) + row * outputs + first, total, n);
}

// Rows are staged 256 columns at a time; several tiles share the staged rows.
constexpr int kStagedRows = 192;  // a multiple of 2, 3, 4, 6 and 12
// A thread takes kTilesOfChunk or a multiple, so that several threads have work.
constexpr int kTilesAtOnce = 16, kTilesOfChunk = 8, kFewRows = 4;

// A format as the source of a many-row product: packed tiles, and a function that unpacks columns k to k +
// 255 of a tile (fewer at its end).
template <class Weights>
struct TileSource {
  int64_t tile_bytes;
  void (*unpack)(const uint8_t* tile, int32_t k, int32_t columns, Weights& to);
  int zero;  // the code of value 0
};

// The steps of a many-row product. Row: 256 staged columns of a row of x.
template <class Row, class Weights>
struct RowSteps {
  int32_t block, block_bytes;  // of x
  void (*stage)(const uint8_t* x, int32_t columns, int zero, Row& to);
  // Adds the products of kTilesTogether tiles to the totals of many_at_once<P> or few_at_once<P> rows; the
  // totals of the next tile follow P::kRows further on. Each row of x is loaded once for all tiles, each tile
  // once for all rows.
  void (*many)(const Weights*, const Row*, int32_t columns, float (*total)[16]);
  void (*few)(const Weights*, const Row*, int32_t columns, float (*total)[16]);
  // Converts totals to outputs, given the tile and the row of x. May be null.
  F (*result)(const uint8_t* tile, const uint8_t* x, const float* total);
};
// Rows per call of a product: limited by vector registers unless the product sets it.
template <class P>
constexpr int many_at_once() {
  if constexpr (requires { P::kManyRows; }) return P::kManyRows;
  else return kRowsAtOnce;
}
template <class P>
constexpr int few_at_once() {
  if constexpr (requires { P::kFewRows; }) return P::kFewRows;
  else return kFewRows;
}
template <class P>
constexpr RowSteps<typename P::Row, typename P::Weights> row_steps() {
  constexpr gimbal::DTypeInfo x = gimbal::info(P::x);
  decltype(RowSteps<typename P::Row, typename P::Weights>::result) result = nullptr;
  if constexpr (requires { P::result; }) result = P::result;
  return {x.block,
          x.bytes,
          P::stage,
          P::template product<many_at_once<P>()>,
          P::template product<few_at_once<P>()>,
          result};
}

// Prefetches the next unpacking (the same columns of the next tiles, or the next columns of the first ones),
// evenly during the multiplication.
struct NextColumns {
  const uint8_t* first;
  int64_t tile_bytes;
  int lines, asked = 0;

  inline void fetch(int parts, int of) {
    for (; asked * of < lines * parts; asked++)
      for (int n = 0; n < kTilesTogether; n++) __builtin_prefetch(first + n * tile_bytes + 64 * asked, 0, 2);
  }
};

// Compiled once for all code formats and once for floats: P has both types and the number of staged rows.
template <class P>
[[gnu::noinline]] void many_rows(const CpuTask& t, int64_t begin, int64_t end,
                                 const TileSource<typename P::Weights>& source,
                                 const RowSteps<typename P::Row, typename P::Weights>& steps) {
  alignas(64) typename P::Row x[P::kRows];
  alignas(64) typename P::Weights w[kTilesTogether];
  alignas(64) float total[kTilesAtOnce][P::kRows][16];
  // Groups of kMany rows, plus some of kFew if that divides evenly: 64 rows are 8 groups of 6 and 4 of 4.
  constexpr int kMany = many_at_once<P>(), kFew = few_at_once<P>(),
                kStep = kMany % kFew ? kMany - kFew : kFew;
  static_assert(kMany % kStep == 0 && kFew % kStep == 0);
  const auto columns = int32_t(t.in[0]->dim[0]);
  const int64_t row_bytes = int64_t(columns) / steps.block * steps.block_bytes;
  auto x_row = [&](int32_t r) { return t.x[1] + (t.row_list ? t.row_list[r] / t.x_share : r) * row_bytes; };
  for (; begin < end; begin += kTilesAtOnce) {
    const int tiles = end - begin < kTilesAtOnce ? int(end - begin) : kTilesAtOnce;
    for (int32_t row = 0; row < t.rows; row += P::kRows) {
      const int rows = t.rows - row < P::kRows ? t.rows - row : P::kRows,
                padded = rows < kFew ? kFew : (rows + kStep - 1) / kStep * kStep;
      for (int i = 0; i < tiles; i++)
        for (int r = 0; r < padded; r++) store(total[i][r], splat(0.f));
      if (rows < padded) __builtin_memset(x + rows, 0, size_t(padded - rows) * sizeof *x);
      for (int32_t k = 0; k < columns; k += kChunk) {
        const int32_t width = columns - k < kChunk ? columns - k : kChunk,
                      from = k / steps.block * steps.block_bytes;
        for (int r = 0; r < rows; r++) steps.stage(x_row(row + r) + from, width, source.zero, x[r]);
        for (int i = 0; i < tiles; i += kTilesTogether) {
          // A last single tile is computed twice; the second sum is ignored.
          for (int n = 0; n < kTilesTogether; n++)
            source.unpack(t.x[0] + (begin + (i + n < tiles ? i + n : i)) * source.tile_bytes, k, columns,
                          w[n]);
          const bool last = i + kTilesTogether >= tiles;
          NextColumns next{t.x[0] + (begin + (last ? 0 : i + kTilesTogether)) * source.tile_bytes +
                               source.tile_bytes * (last ? k + kChunk : k) / columns,
                           source.tile_bytes, int(source.tile_bytes * width / columns / 64) + 1};
          for (int r = 0; r < padded;) {
            const int left = padded - r;
            const bool many = left == kMany || left >= kMany + kFew;
            const int until = r + (many ? kMany : kFew);
            next.fetch(until, padded);
            (many ? steps.many : steps.few)(w, x + r, width, total[i] + r);
            r = until;
          }
        }
      }
      for (int i = 0; i < tiles; i++)
        for (int r = 0; r < rows; r++)
          put(t, begin + i, t.row_list ? t.row_list[row + r] : row + r,
              steps.result
                  ? steps.result(t.x[0] + (begin + i) * source.tile_bytes, x_row(row + r), total[i][r])
                  : load(total[i][r]));
    }
  }
}

// Some formats reach higher bandwidth with two interleaved streams from distant addresses. The cause is
// unknown; the choice is measured (docs/internals/measurements.md).
template <class W>
constexpr bool wants_two_streams() {
  if constexpr (requires { W::two_streams; }) return W::two_streams;
  else return false;
}

// For one row of x. OneRow<W>::tile(tile, x, columns) returns the 16 outputs of a tile, tiles() those of two.
template <template <class> class OneRow, class W>
void one_row_two_streams(const CpuTask& t, int64_t begin, const CpuTask& other, int64_t other_begin,
                         int64_t units) {
  for (int64_t i = 0; i < units; i++) {
    F total[2];
    OneRow<W>::template tiles<2>({tile_at<W>(t, begin + i), tile_at<W>(other, other_begin + i)},
                                 activations_at<W>(t, 0), int32_t(t.in[0]->dim[0]), total);
    put(t, begin + i, 0, total[0]);
    put(other, other_begin + i, 0, total[1]);
  }
}

// Many: the product, and Many::unpack.
template <template <class> class OneRow, class W, class Many>
void matmul(const CpuTask& t, int64_t begin, int64_t end) {
  if (t.rows > 1)
    return many_rows<typename Many::Product::Staged>(
        t, begin, end, {kLayout<W::type>.tile_bytes(t.in[0]->dim[0]), Many::unpack, W::zero},
        row_steps<typename Many::Product>());
  if constexpr (wants_two_streams<W>()) {
    const int64_t half = (end - begin) / 2;
    one_row_two_streams<OneRow, W>(t, begin, t, begin + half, half);
    // A remaining tile is paired with itself.
    if ((end - begin) % 2) one_row_two_streams<OneRow, W>(t, end - 1, t, end - 1, 1);
  } else {
    for (; begin < end; begin++)
      put(t, begin, 0,
          OneRow<W>::tile(tile_at<W>(t, begin), activations_at<W>(t, 0), int32_t(t.in[0]->dim[0])));
  }
}
