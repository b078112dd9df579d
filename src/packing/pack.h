// Packs weights for the kernels (layout.h) at load time. Every
// backend with packed weights links it.
#pragma once
#include <cstdint>

#include "packing/layout.h"

namespace gimbal::packing {

// Packs rows [begin, end) of a matrix of `columns` x `rows` from dense blocks at `source` (row `begin`; after
// row end - 1 the scale of the tensor, where the format has one) into `tiles`, at the tile of row `begin`;
// its padding is already zero. begin is a multiple of 16.
void pack_tiles(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* tiles,
                int64_t begin, int64_t end);

// The same into the whole matrix at `packed`.
inline void pack(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* packed,
                 int64_t begin, int64_t end) {
  pack_tiles(type, columns, rows, source, packed + begin / kTileRows * tile_bytes(type, columns), begin, end);
}

}  // namespace gimbal::packing
