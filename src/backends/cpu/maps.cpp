// The functions of ops/maps.def alone, without ops around them, for tests. Compiled once per instruction set,
// like kernels.cpp.
#include "backends/cpu/map_abi.h"
#include "backends/cpu/maps_wide.h"
#include "vec.h"  // from variants/<name>

namespace CPU_VARIANT {
namespace {
#include "backends/cpu/kernels/maps.h"
}  // namespace

const MapKernels* maps_of_variant(int function);
const MapKernels* maps_of_variant(int function) { return map_kernels(function); }

}  // namespace CPU_VARIANT
