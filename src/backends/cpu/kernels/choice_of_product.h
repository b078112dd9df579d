// Chooses the product of many rows for a format and an instruction set.
#pragma once

#ifdef CPU_HALF_TILES
#include "backends/cpu/kernels/half_tile_product.h"
#else
#include "backends/cpu/kernels/wide_product.h"
#endif

template <int Columns, int Most, bool UnitPerGroup, bool Minimums>
constexpr auto product_of() {
  static_assert(Most < 255 || !Minimums, "no format of 8-bit codes has minimums");
#ifdef CPU_HALF_TILES
  return HalfTileProduct<Columns, UnitPerGroup, Minimums>();
#else
  if constexpr (Most == 255 && kShortSums) return WideProduct<Columns, UnitPerGroup>();
  else return Product<Columns, product_steps(Most), UnitPerGroup, Minimums>();
#endif
}
