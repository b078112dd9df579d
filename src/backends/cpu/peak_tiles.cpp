// The fastest dot product of bytes by tiles, and beside it the FMA of the vectors: peak_loops.cpp for the
// instruction sets that kernels_tiles.cpp is compiled for.
#include "backends/cpu/peak_loops.h"
#include "tile.h"  // from variants/<name>
#include "vec.h"

namespace CPU_VARIANT {
namespace {

#include "backends/cpu/kernels/peak_fp32.h"

constexpr int kTileOperations = 4 * 2 * 16 * 16 * 64;

int32_t int8(int64_t rounds) {
  alignas(64) uint8_t bytes[16][64];
  for (int i = 0; i < 1024; i++) bytes[i / 64][i % 64] = uint8_t(i);
  TileConfig c;
  for (int tile = 0; tile < 8; tile++) c.shape(tile, 16, 64);
  configure(c);
  load_tile<4>(bytes, 64), load_tile<5>(bytes, 64), load_tile<6>(bytes, 64), load_tile<7>(bytes, 64);
  for (; rounds > 0; rounds--) {
    multiply_signed<0, 4, 6>(), multiply_signed<1, 5, 6>();
    multiply_signed<2, 4, 7>(), multiply_signed<3, 5, 7>();
  }
  store_tile<0>(bytes, 64);
  release_tiles();
  return bytes[0][0];
}

}  // namespace

extern const CpuPeakLoops peak_loops;
const CpuPeakLoops peak_loops = {kTileRank, kFloatSums * 16 * 2, kTileOperations, fp32, int8};

}  // namespace CPU_VARIANT
