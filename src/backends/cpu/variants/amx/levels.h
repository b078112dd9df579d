// What vec.h lacks for tiles. Meaning: variants/amx_emulated/levels.h.
#pragma once
#include <stdint.h>

#include "vec.h"

namespace CPU_VARIANT {
namespace {

inline Codes less(Codes c, int zero) { return {_mm512_sub_epi8(c.v, _mm512_set1_epi8(char(zero)))}; }

}  // namespace
}  // namespace CPU_VARIANT
