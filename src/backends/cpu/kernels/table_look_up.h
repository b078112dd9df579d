// Products of ternary weights by table look-up, after T-MAC (Wei et al., "T-MAC: CPU Renaissance via Table
// Lookup for Low-Bit LLM Deployment on Edge", 2024): the tables of 256 columns are made once for many tiles,
// and nothing is multiplied. The integer sums are those of row_sums.h, and so are the bits.
#pragma once

#include "backends/cpu/kernels/triple_tables.h"

// A work item is enough tiles to make tables for; one launch makes them for at most kTilesOfTables.
constexpr int kTilesOfItem = 16, kTilesOfTables = 64;

inline CpuWork look_up_work(const CpuTask& t) {
  const CpuWork tiles = matmul_work(t);
  return {(tiles.items + kTilesOfItem - 1) / kTilesOfItem, tiles.operations};
}

// Adds the sums of up to 256 columns of T tiles to their totals. `next`: so many bytes further on, codes are
// prefetched.
template <bool Triples, int T>
inline void look_up(const uint8_t* first, int64_t tile_bytes, int64_t next, const uint8_t* tables,
                    int32_t columns, I* total) {
  const uint8_t* codes[T];
  TableSums sums[T];
  for (int i = 0; i < T; i++) codes[i] = first + i * tile_bytes, sums[i] = TableSums{};
  int vectors = columns / 16;
  if constexpr (Triples) {
    const int of_triples = triple_columns(columns) / 16;
    look_up_triples<T>(codes, of_triples, tables, next, sums);
    for (const uint8_t*& c : codes) c += 64 * of_triples;
    tables += of_triples / kVectorsOfTriples * 4 * kBytesOfTables;
    vectors -= of_triples;
  }
  look_up_pairs<T>(codes, vectors, tables, next, sums);
  for (int i = 0; i < T; i++) total[i] = add(total[i], widen(sums[i]));
}

template <DType Weights, bool Triples>
void mat_mul_by_tables(const CpuTask& t, int64_t begin, int64_t end) {
  constexpr gimbal::cpu::Layout layout = kLayout<Weights>;
  constexpr gimbal::DTypeInfo x = gimbal::info(DType::A8_ROW);
  constexpr int T = kTilesOfLookUp;
  const auto columns = int32_t(t.in[0]->dim[0]);
  const int64_t tile_bytes = layout.tile_bytes(columns), tiles = (t.in[0]->dim[1] + 15) / 16,
                last = end * kTilesOfItem < tiles ? end * kTilesOfItem : tiles;
  alignas(64) uint8_t tables[kChunk / 8 * kBytesOfTables];
  I total[kTilesOfTables];
  for (int64_t first = begin * kTilesOfItem; first < last; first += kTilesOfTables) {
    const int n = last - first < kTilesOfTables ? int(last - first) : kTilesOfTables;
    const uint8_t* at = t.x[0] + first * tile_bytes;
    for (int32_t row = 0; row < t.rows; row++) {
      const uint8_t* a = t.x[1] + int64_t(row) * columns / x.block * x.bytes;
      for (int i = 0; i < n; i++) total[i] = splat(int32_t(0));
      for (int32_t k = 0; k < columns; k += kChunk) {
        const int32_t width = columns - k < kChunk ? columns - k : kChunk;
        const uint8_t* chunk = a + k / x.block * x.bytes;
        if constexpr (Triples)
          make_pair_tables(chunk, triple_columns(width), width,
                           make_triple_tables(chunk, triple_columns(width), tables));
        else make_pair_tables(chunk, 0, width, tables);
        const uint8_t* codes = at + layout.chunk_offset(columns, k);
        int i = 0;
        for (; i + T <= n; i += T)
          look_up<Triples, T>(codes + i * tile_bytes, tile_bytes, 2 * T * tile_bytes, tables, width,
                              total + i);
        for (; i < n; i++)
          look_up<Triples, 1>(codes + i * tile_bytes, tile_bytes, tile_bytes, tables, width, total + i);
      }
      const F unit = splat(read<float>(a));
      for (int i = 0; i < n; i++)
        put(t, first + i, row,
            mul(to_float(total[i]), mul(load(reinterpret_cast<const float*>(at + i * tile_bytes)), unit)));
    }
  }
}
