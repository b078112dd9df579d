// Rows of a table, decoded as in tensor/quant.h.
#pragma once

#include "backends/cpu/kernels/product.h"
#include "backends/cpu/kernels/rows.h"

// row(tile, lane, y): decodes the table row in lane `lane` of a tile.
template <class Row>
inline void embed_rows(const CpuTask& t, int64_t begin, int64_t end, int64_t tile_bytes, Row one_row) {
  const int32_t columns = t.in[0]->dim[0], vocabulary = t.in[0]->dim[1];
  for (int64_t row = begin; row < end; row++) {
    int32_t token = read<int32_t>(t.x[1] + 4 * row);
    if (token < 0 || token >= vocabulary)
      token = 0;  // the runtime checks tokens; memory safety does not depend on it
    one_row(t.x[0] + token / 16 * tile_bytes, token % 16, out_row(t, row, columns));
  }
}

template <class W>
void embed_numbers(const CpuTask& t, int64_t begin, int64_t end) {
  constexpr int64_t bytes = gimbal::info(W::type).bytes;
  const int32_t columns = t.in[0]->dim[0];
  embed_rows(t, begin, end, kLayout<W::type>.tile_bytes(columns),
             [columns](const uint8_t* tile, int lane, float* y) {
               for (int32_t k = 0; k < columns; k++) y[k] = W::one(tile + (16 * k + lane) * bytes);
             });
}

// Codes are taken from tiles unpacked as for many rows of x, so that formats share this.
template <bool UnitPerGroup, bool Minimums>
[[gnu::noinline]] void embed_unpacked(const CpuTask& t, int64_t begin, int64_t end, int group,
                                      const TileSource<UnpackedTile>& source) {
  const int32_t columns = t.in[0]->dim[0];
  embed_rows(t, begin, end, source.tile_bytes, [&](const uint8_t* tile, int lane, float* y) {
    alignas(64) UnpackedTile w;
    for (int32_t k = 0; k < columns; k++, y++) {
      if (k % kChunk == 0) source.unpack(tile, k, columns, w);
      const int i = k % kChunk, g = i / group;
      const float code = float(w.codes[64 * (i / 4) + 4 * lane + i % 4] - source.zero);
      if constexpr (UnitPerGroup) {
        *y = code * w.scale[g][lane];
        if constexpr (Minimums) *y = *y + w.minimum[g][lane];
      } else {
        *y = w.unit[lane] * w.scale[g][lane] * code;
        if constexpr (Minimums) {
          const auto* two = reinterpret_cast<const uint8_t*>(w.minimum_pairs[g / 2] + lane);
          *y = *y - w.minimum_unit[lane] * float(read<int16_t>(two + 2 * (g % 2)));
        }
      }
    }
  });
}
template <class W, class Many>
void embed_codes(const CpuTask& t, int64_t begin, int64_t end) {
  using P = typename Many::Product;
  embed_unpacked<P::kUnitPerGroup, W::minimums>(
      t, begin, end, P::kColumns,
      {kLayout<W::type>.tile_bytes(t.in[0]->dim[0]), Many::unpack, W::unpacked_zero});
}
