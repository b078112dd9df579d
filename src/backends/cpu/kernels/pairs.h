// Many rows against tiles of 16-bit floats as pairs of bf16: two columns of one output, or of one row of x,
// are adjacent, as the instructions multiply them. Shared by both products by pairs.
#pragma once

#include "backends/cpu/kernels/matmul.h"
#include "backends/cpu/kernels/memory.h"

constexpr int kPairsTogether = 16;  // of x, that are staged together: zeros behind the last column

struct Pairs {
  struct Row {
    uint32_t x[kChunk / 2];
  };
  struct Weights {
    alignas(64) uint32_t columns[kChunk / 2][16];
  };
  static constexpr DType x = DType::F32;
  static constexpr int kRows = kStagedRows;

  static void stage(const uint8_t* from, int32_t columns, int, Row& r) {
    const auto* f = reinterpret_cast<const float*>(from);
    for (int32_t k = 0; k < columns; k += 2 * kPairsTogether)
      store_bf16(r.x + k / 2, load_part(f + k, columns - k),
                 columns - k > 16 ? load_part(f + k + 16, columns - k - 16) : splat(0.f));
  }
};

// Columns k to k + 255 of a tile (fewer, where it ends): each is 16 values of 2 bytes, one per output. Zeros
// behind the last, as behind those of x.
template <DType T>
void unpack_pairs(const uint8_t* tile, int32_t k, int32_t columns, Pairs::Weights& to) {
  const uint8_t* w = tile + kLayout<T>.chunk_offset(columns, k);
  const int32_t width = columns - k < kChunk ? columns - k : kChunk;
  static constexpr uint8_t zeros[32] = {};
  int32_t i = 0;
  for (; i < width; i += 2, w += 64) store_pairs<T>(to.columns[i / 2], w, i + 1 < width ? w + 32 : zeros);
  for (; i % (2 * kPairsTogether); i += 2) store_pairs<T>(to.columns[i / 2], zeros, zeros);
}

template <class P, DType T>
void matmul_by_pairs(const CpuTask& t, int64_t begin, int64_t end) {
  many_rows<P>(t, begin, end, {kLayout<T>.tile_bytes(t.in[0]->dim[0]), unpack_pairs<T>, 0}, row_steps<P>());
}
