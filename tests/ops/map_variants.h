// The tables of the maps of every instruction set that this CPU has.
#pragma once
#include <string>
#include <vector>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/map_abi.h"
#include "ops/maps.h"

#define CPU_VARIANT_ROW(name, needs)               \
  namespace name {                                 \
  const MapKernels* maps_of_variant(int function); \
  }
#include "map_variants.inc"
#undef CPU_VARIANT_ROW

namespace gimbal::test {

struct MapVariant {
  std::string name;
  const MapKernels* (*kernels)(int function);
};
// The plainest first: what every CPU can do.
inline std::vector<MapVariant> map_variants() {
  using namespace cpu;  // the names of the features
  const uint32_t has = cpu_features();
  std::vector<MapVariant> out;
#define CPU_VARIANT_ROW(name, needs) \
  if ((uint32_t(needs) & ~has) == 0) out.push_back({#name, ::name::maps_of_variant});
#include "map_variants.inc"
#undef CPU_VARIANT_ROW
  return out;
}

}  // namespace gimbal::test
