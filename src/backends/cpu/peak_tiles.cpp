// The fastest dot product of bytes by tiles, and beside it the FMA of the vectors: peak_loops.cpp for the
// instruction sets that kernels_tiles.cpp is compiled for.
#include "backends/cpu/peak_loops.h"
#include "tile.h"  // from variants/<name>
#include "vec.h"

namespace CPU_VARIANT {
namespace {

constexpr int kFloatSums = 12;  // that do not wait for each other
constexpr int kTileOperations = 4 * 2 * 16 * 16 * 64;

// As far as the compiler knows, x is another one now.
inline void renew(F& x) {
#if defined(__AVX512F__)
  __asm__ volatile("" : "+v"(x.v));
#else
  __asm__ volatile("" : "+m"(x));
#endif
}

float fp32(int64_t rounds) {
  F sums[kFloatSums], x = splat(1.5f), y = splat(0.25f);
  for (F& s : sums) s = x;
  for (; rounds > 0; rounds--)
    for (F& s : sums) {
      renew(x);
      s = fma(x, y, s);
    }
  for (F& s : sums) x = add(x, s);
  return tree_sum(x);
}

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
