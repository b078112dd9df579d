// The table of maps.def: facts of the functions of the family "map".
#pragma once
#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"

namespace gimbal {

enum class MapFunction : uint16_t {
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps) Id = number,
#include "ops/maps.def"
};

// The classes of values that a function takes, as bits.
enum MapClasses : uint8_t {
  kMapF = 1,  // f16 bf16 f32 f64
  kMapI = 2,  // u8 i16 i32 u32 i64
  kMapB = 4,  // bool
  kMapFI = kMapF | kMapI,
  kMapIB = kMapI | kMapB,
  kMapFIB = kMapF | kMapI | kMapB,
};

struct MapFacts {
  MapFunction function;
  const char* name;
  uint8_t inputs;   // 1 or 2
  uint8_t numbers;  // of the op's f that it takes
  uint8_t classes;  // MapClasses
  uint8_t ulps;     // the largest error in f32; 0: rounded right, or exact
  bool to_bool;     // the result is bool; else of the inputs' dtype
};

inline constexpr MapFacts kMaps[] = {
#define GIMBAL_MAP(number, Id, name, inputs, classes, ulps) \
  {MapFunction::Id, name, inputs, 0, kMap##classes, ulps, false},
#define GIMBAL_MAP_NUMBERS(number, Id, name, inputs, classes, ulps, numbers) \
  {MapFunction::Id, name, inputs, numbers, kMap##classes, ulps, false},
#define GIMBAL_MAP_BOOL(number, Id, name, inputs, classes, ulps) \
  {MapFunction::Id, name, inputs, 0, kMap##classes, ulps, true},
#include "ops/maps.def"
};

// The group of ops/maps.def that has the function, 1 to kMapGroups; 0: none, it takes no floats.
inline constexpr int kMapGroups = 6;
constexpr int map_group(MapFunction function) {
#define GIMBAL_MAP(number, Id, ...) \
  if (function == MapFunction::Id) return GIMBAL_MAPS_OF;
#define GIMBAL_MAPS_OF 1
#include "ops/maps.def"
#define GIMBAL_MAP(number, Id, ...) \
  if (function == MapFunction::Id) return GIMBAL_MAPS_OF;
#define GIMBAL_MAPS_OF 2
#include "ops/maps.def"
#define GIMBAL_MAP(number, Id, ...) \
  if (function == MapFunction::Id) return GIMBAL_MAPS_OF;
#define GIMBAL_MAPS_OF 3
#include "ops/maps.def"
#define GIMBAL_MAP(number, Id, ...) \
  if (function == MapFunction::Id) return GIMBAL_MAPS_OF;
#define GIMBAL_MAPS_OF 4
#include "ops/maps.def"
#define GIMBAL_MAP(number, Id, ...) \
  if (function == MapFunction::Id) return GIMBAL_MAPS_OF;
#define GIMBAL_MAPS_OF 5
#include "ops/maps.def"
#define GIMBAL_MAP(number, Id, ...) \
  if (function == MapFunction::Id) return GIMBAL_MAPS_OF;
#define GIMBAL_MAPS_OF 6
#include "ops/maps.def"
  return 0;
}

constexpr const MapFacts* map_facts(MapFunction function) {
  for (const MapFacts& f : kMaps)
    if (f.function == function) return &f;
  return nullptr;
}
constexpr const MapFacts* map_facts(std::string_view name) {
  for (const MapFacts& f : kMaps)
    if (name == f.name) return &f;
  return nullptr;
}

// The formats that a function takes: two operands have one. The format of its result.
constexpr DTypeSet formats_of(const MapFacts& f) {
  return (f.classes & kMapF ? kFloats : 0) | (f.classes & kMapI ? kIntegers : 0) |
         (f.classes & kMapB ? set_of(DType::Bool) : 0);
}
constexpr DType result_of(const MapFacts& f, DType operands) { return f.to_bool ? DType::Bool : operands; }

}  // namespace gimbal
