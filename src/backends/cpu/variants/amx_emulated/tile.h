// The tile instructions of AMX-INT8 in plain C++, as defined in Intel's "Software Developer's Manual", volume
// 2: so the tile kernels also run and are tested on machines without AMX. Only tests link this. Where the CPU
// would fault, it traps.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/tile_config.h"

namespace CPU_VARIANT {
namespace {

constexpr int16_t kTileRank = 60;  // as the real rows have: tests see the same choices

struct Tiles {
  bool configured;
  TileConfig config;
  uint8_t row[8][16][64];
};
__attribute__((tls_model("initial-exec"))) thread_local Tiles tiles_of_thread;

inline void fault_unless(bool allowed) {
  if (!allowed) __builtin_trap();
}
inline int rows_of(int tile) { return tiles_of_thread.config.rows[tile]; }
inline int bytes_of(int tile) { return tiles_of_thread.config.columns[tile]; }
inline void fault_unless_shaped(int tile) {
  fault_unless(tiles_of_thread.configured && rows_of(tile) > 0 && bytes_of(tile) > 0);
}

// LDTILECFG: takes the shapes, and all tiles become zero.
inline void configure(const TileConfig& c) {
  fault_unless(c.palette == 1 && c.start_row == 0);
  for (uint8_t r : c.reserved) fault_unless(r == 0);
  for (int i = 0; i < 16; i++) {
    fault_unless(c.columns[i] <= (i < 8 ? 64 : 0) && c.rows[i] <= (i < 8 ? 16 : 0));
    fault_unless((c.columns[i] == 0) == (c.rows[i] == 0));
  }
  tiles_of_thread = Tiles{true, c, {}};
}
// TILERELEASE: tiles have no shapes any more.
inline void release_tiles() { tiles_of_thread.configured = false; }
// TILEZERO
template <int Tile>
inline void zero_tile() {
  fault_unless_shaped(Tile);
  __builtin_memset(tiles_of_thread.row[Tile], 0, sizeof tiles_of_thread.row[Tile]);
}
// TILELOADD: rows `stride` bytes apart; bytes beyond the tile's shape become zero.
template <int Tile>
inline void load_tile(const void* p, int64_t stride) {
  zero_tile<Tile>();
  for (int r = 0; r < rows_of(Tile); r++)
    __builtin_memcpy(tiles_of_thread.row[Tile][r], static_cast<const uint8_t*>(p) + r * stride,
                     size_t(bytes_of(Tile)));
}
// TILESTORED: the rows and bytes of the tile's shape, nothing else.
template <int Tile>
inline void store_tile(void* p, int64_t stride) {
  fault_unless_shaped(Tile);
  for (int r = 0; r < rows_of(Tile); r++)
    __builtin_memcpy(static_cast<uint8_t*>(p) + r * stride, tiles_of_thread.row[Tile][r],
                     size_t(bytes_of(Tile)));
}

// Which tiles may be multiplied: those whose shapes go together.
template <int Sum, int A, int B>
inline void fault_unless_they_fit() {
  static_assert(Sum != A && Sum != B && A != B);
  fault_unless_shaped(Sum), fault_unless_shaped(A), fault_unless_shaped(B);
  fault_unless(bytes_of(Sum) % 4 == 0 && bytes_of(A) % 4 == 0 && bytes_of(B) % 4 == 0);
  fault_unless(rows_of(Sum) == rows_of(A) && bytes_of(A) / 4 == rows_of(B) && bytes_of(Sum) == bytes_of(B));
}

// Sum[m][n] += over k, and j < 4: A[m][4 k + j] * B[k][4 n + j], in 32 bits that wrap around.
template <class OfA, class OfB, int Sum, int A, int B>
inline void multiply_tiles() {
  fault_unless_they_fit<Sum, A, B>();
  for (int m = 0; m < rows_of(Sum); m++)
    for (int n = 0; n < bytes_of(Sum) / 4; n++) {
      uint32_t sum;
      __builtin_memcpy(&sum, tiles_of_thread.row[Sum][m] + 4 * n, 4);
      for (int k = 0; k < rows_of(B); k++)
        for (int j = 0; j < 4; j++)
          sum += uint32_t(int32_t(OfA(tiles_of_thread.row[A][m][4 * k + j])) *
                          int32_t(OfB(tiles_of_thread.row[B][k][4 * n + j])));
      __builtin_memcpy(tiles_of_thread.row[Sum][m] + 4 * n, &sum, 4);
    }
}
// TDPBSSD, TDPBUSD
template <int Sum, int A, int B>
inline void multiply_signed() {
  multiply_tiles<int8_t, int8_t, Sum, A, B>();
}
template <int Sum, int A, int B>
inline void multiply_unsigned_by_signed() {
  multiply_tiles<uint8_t, int8_t, Sum, A, B>();
}

}  // namespace
}  // namespace CPU_VARIANT
