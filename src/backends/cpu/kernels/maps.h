// The functions of ops/maps.def for dense blocks of values: f32 and f64 from the texts of ops/formulas,
// integers from map_abi.h. The file that includes this has included map_abi.h and maps_wide.h before, outside
// of the namespace.
#pragma once

#include "backends/cpu/kernels/words.h"
#include "backends/cpu/kernels/words64.h"
#include "ops/formulas/all.inc"
#include "ops/formulas/f64/all.inc"

// `each` of n values and of as many second ones, if there are any. Reads before it writes: y may be a or b.
// `self` is the function that calls this: the last values, less than a block, are computed by it as a block
// in other memory, so that its formula is compiled once.
template <class T>
struct LanesOfType;
template <>
struct LanesOfType<float> {
  using Type = LANES_f32;
};
template <>
struct LanesOfType<double> {
  using Type = LANES_f64;
};
template <class T>
LANES_INLINE typename LanesOfType<T>::Type load_block(const T* p) {
  typename LanesOfType<T>::Type x;
  load_registers(p, x.v);
  return x;
}
template <bool Two, class T, class Each>
LANES_INLINE void map_values(const T* a, const T* b, const double* f, T* y, int64_t n,
                             void (*self)(const T*, const T*, const double*, T*, int64_t), Each each) {
  constexpr int kBlock = 64 / sizeof(T);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock)
    store_registers(y + i, each(load_block(a + i), load_block((Two ? b : a) + i)).v);
  if (i == n) return;
  T first[kBlock] = {}, second[kBlock] = {};
  const size_t bytes = size_t(n - i) * sizeof(T);
  __builtin_memcpy(first, a + i, bytes);
  if (Two) __builtin_memcpy(second, b + i, bytes);
  self(first, second, f, first, kBlock);
  __builtin_memcpy(y + i, first, bytes);
}

#define MAP_CALL_1_0(name) name(p)
#define MAP_CALL_2_0(name) name(p, q)
#define MAP_CALL_1_1(name) name(p, f0)
#define MAP_CALL_1_2(name) name(p, f0, f1)
#define MAP_OF_TYPE(T, prefix, formula, Id, inputs, numbers)                                              \
  void prefix##Id(const T* a, const T* b, const double* f, T* y, int64_t n) {                             \
    using Lanes = LanesOfType<T>::Type;                                                                   \
    [[maybe_unused]] const Lanes f0(T(numbers > 0 ? f[0] : 0)), f1(T(numbers > 1 ? f[1] : 0));            \
    map_values<inputs == 2, T>(                                                                           \
        a, b, f, y, n,                                                                                    \
        prefix##Id, [=](const Lanes& p, [[maybe_unused]] const Lanes& q) __attribute__((always_inline)) { \
          return MAP_CALL_##inputs##_##numbers(formula##Id);                                              \
        });                                                                                               \
  }
#define MAP_OF_TYPES(Id, inputs, numbers)                \
  MAP_OF_TYPE(float, floats_, map_, Id, inputs, numbers) \
  MAP_OF_TYPE(double, doubles_, wide_, Id, inputs, numbers)
#define GIMBAL_MAP_NUMBERS(number, Id, name, inputs, classes, ulps, numbers) \
  MAP_IF(MAP_HAS_F_##classes, MAP_OF_TYPES(Id, inputs, numbers))
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps) \
  MAP_IF(MAP_HAS_F_##classes, MAP_OF_TYPES(Id, inputs, 0))
#include "ops/maps.def"

// Of the function with this number; null if there is none.
LANES_INLINE const MapKernels* map_kernels(int function) {
  static constexpr MapKernels kKernels[] = {
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps)                                       \
  {MAP_OR_NULL(MAP_HAS_F_##classes, floats_##Id), MAP_OR_NULL(MAP_HAS_F_##classes, doubles_##Id), \
   MAP_OR_NULL(MAP_HAS_I_##classes, ::gimbal::cpu_maps::int_##Id)},
#include "ops/maps.def"
  };
  static constexpr int kNumbers[] = {
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps) number,
#include "ops/maps.def"
  };
  for (size_t i = 0; i < sizeof kNumbers / sizeof *kNumbers; i++)
    if (kNumbers[i] == function) return &kKernels[i];
  return nullptr;
}
