// The functions of ops/maps.def as the CPU's kernels call them: n values, dense, in the caller's memory. y
// may be a or b; b is ignored by functions of one input, f by those without numbers. Results of comparisons
// and is_nan are 1 and 0 in the class's type.
#pragma once
#include <stddef.h>
#include <stdint.h>
#if defined(__aarch64__)
#include <arm_neon.h>  // for kernels/words.h, which stands in a namespace
#endif

using MapF32 = void (*)(const float* a, const float* b, const double* f, float* y, int64_t n);
using MapF64 = void (*)(const double* a, const double* b, const double* f, double* y, int64_t n);
// bits: of the type, which wraps; below 0: without sign. bool is -1.
using MapInt = void (*)(const int64_t* a, const int64_t* b, const double* f, int64_t* y, int64_t n, int bits);
// Null: the function does not take this class.
struct MapKernels {
  MapF32 f32;
  MapF64 f64;
  MapInt integer;
};

// Which classes a line of maps.def has, for macros: MAP_HAS_F_FI is 1.
#define MAP_HAS_F_F 1
#define MAP_HAS_F_FI 1
#define MAP_HAS_F_FIB 1
#define MAP_HAS_F_I 0
#define MAP_HAS_F_IB 0
#define MAP_HAS_I_F 0
#define MAP_HAS_I_FI 1
#define MAP_HAS_I_FIB 1
#define MAP_HAS_I_I 1
#define MAP_HAS_I_IB 1
#define MAP_IF_0(...)
#define MAP_IF_1(...) __VA_ARGS__
#define MAP_IF_OF(has, ...) MAP_IF_##has(__VA_ARGS__)
#define MAP_IF(has, ...) MAP_IF_OF(has, __VA_ARGS__)
#define MAP_OR_NULL_0(name) nullptr
#define MAP_OR_NULL_1(name) name
#define MAP_OR_NULL_OF(has, name) MAP_OR_NULL_##has(name)
#define MAP_OR_NULL(has, name) MAP_OR_NULL_OF(has, name)

// Those of integers are compiled once, for the CPU that every variant can be: maps_int.cpp.
namespace gimbal::cpu_maps {
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps)                                                  \
  MAP_IF(MAP_HAS_I_##classes, void int_##Id(const int64_t* a, const int64_t* b, const double* f, int64_t* y, \
                                            int64_t n, int bits);)
#include "ops/maps.def"
}  // namespace gimbal::cpu_maps
