// The tile instructions of AMX-INT8. Meanings: variants/amx_emulated/tile.h. Written as assembler, because
// g++ 12's intrinsics accept no template argument as a tile's number, and do not declare that a load of a
// tile reads memory, so the compiler may move writes of that memory after it.
#pragma once
#include <stdint.h>

#include "backends/cpu/kernels/tile_config.h"

namespace CPU_VARIANT {
namespace {

constexpr int16_t kTileRank = 60;

inline void configure(const TileConfig& c) { __asm__ volatile("ldtilecfg %0" : : "m"(c) : "memory"); }
inline void release_tiles() { __asm__ volatile("tilerelease" : : : "memory"); }
template <int Tile>
inline void zero_tile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(Tile));
}
template <int Tile>
inline void load_tile(const void* p, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
inline void store_tile(void* p, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(Tile) : "memory");
}
template <int Sum, int A, int B>
inline void multiply_signed() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
}
template <int Sum, int A, int B>
inline void multiply_unsigned_by_signed() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
}

}  // namespace
}  // namespace CPU_VARIANT
