// The product of tiles of bf16 pairs, beside the other tile instructions. Meaning:
// variants/amxbf16_emulated/tile.h.
#pragma once
#include "backends/cpu/variants/amx/tile.h"

namespace CPU_VARIANT {
namespace {

template <int Sum, int A, int B>
inline void multiply_pairs() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
}

}  // namespace
}  // namespace CPU_VARIANT
