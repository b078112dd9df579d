// What vec.h lacks for tiles: code - zero in each byte, as a signed number.
#pragma once
#include <stdint.h>

#include "vec.h"

namespace CPU_VARIANT {
namespace {

inline Codes less(Codes c, int zero) {
  for (uint8_t& code : c.v) code = uint8_t(code - zero);
  return c;
}

}  // namespace
}  // namespace CPU_VARIANT
