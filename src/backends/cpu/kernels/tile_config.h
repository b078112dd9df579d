// The 64 bytes that define the shape of each tile register: palette 1 of Intel's AMX, "Intel 64 and IA-32
// Architectures Software Developer's Manual", volume 1, chapter 18. Included by every variants/*/tile.h.
#pragma once
#include <stdint.h>

namespace CPU_VARIANT {
namespace {

struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t columns[16] = {};  // bytes of a row, at most 64; of 8 tiles, the rest is reserved
  uint8_t rows[16] = {};      // at most 16

  constexpr void shape(int tile, int tile_rows, int row_bytes) {
    rows[tile] = uint8_t(tile_rows), columns[tile] = uint16_t(row_bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace
}  // namespace CPU_VARIANT
