// Number formats: one enum for plain and quantized formats, generated from dtypes.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace gimbal {

inline constexpr uint16_t kNotInFiles = 0xffff;

enum class DType : uint8_t {
#define GIMBAL_DTYPE(number, id, ...) id = number,
#include "tensor/dtypes.def"
#undef GIMBAL_DTYPE
};

// All formats in the order of dtypes.def. The numbers may have gaps.
inline constexpr DType kAllDTypes[] = {
#define GIMBAL_DTYPE(number, id, ...) DType::id,
#include "tensor/dtypes.def"
#undef GIMBAL_DTYPE
};
// The largest number plus one: the size of tables indexed by format number.
inline constexpr int kDTypeNumbers = [] {
  int most = 0;
  for (DType t : kAllDTypes) most = int(t) > most ? int(t) : most;
  return most + 1;
}();

struct DTypeInfo {
  const char* name;  // lower case, as users type it
  uint16_t block;    // values per block
  uint16_t bytes;    // bytes per block
  uint16_t gguf;     // type id in GGUF files
};

struct DTypeTable {
  DTypeInfo at[kDTypeNumbers + 1];  // by number; the last entry stands for unassigned numbers
};
inline constexpr DTypeTable kDTypes = [] {
  DTypeTable t{};
  for (DTypeInfo& i : t.at) i = {"no format", 1, 0, kNotInFiles};
#define GIMBAL_DTYPE(number, id, name, block, bytes, gguf) t.at[number] = {name, block, bytes, gguf};
#include "tensor/dtypes.def"
#undef GIMBAL_DTYPE
  return t;
}();

constexpr const DTypeInfo& info(DType t) {
  return kDTypes.at[int(t) < kDTypeNumbers ? int(t) : kDTypeNumbers];
}

// A hash of name and block layout: plugin and host compare it, so that a number means one format to both.
constexpr uint64_t meaning(DType t) {
  return Hash().add(info(t).name).add(info(t).block).add(info(t).bytes).value();
}

// Bytes of n values from a block boundary on; n must be a multiple of the block.
constexpr int64_t row_bytes(DType t, int64_t n) { return n / info(t).block * info(t).bytes; }

// A set of formats as bits, for kernel tables.
using DTypeSet = uint64_t;
static_assert(kDTypeNumbers <= 64);
constexpr DTypeSet set_of() { return 0; }
template <class... T>
constexpr DTypeSet set_of(DType t, T... rest) {
  return (DTypeSet(1) << int(t)) | set_of(rest...);
}
constexpr bool has(DTypeSet s, DType t) { return s >> int(t) & 1; }

// Plain numbers, by what arithmetic takes them. Stored ones can be copied, converted, gathered and filled
// only.
inline constexpr DTypeSet kFloats = set_of(DType::F16, DType::BF16, DType::F32, DType::F64),
                          kIntegers = set_of(DType::U8, DType::I16, DType::I32, DType::U32, DType::I64),
                          kStored = set_of(DType::I8, DType::U16, DType::U64, DType::F8_E4M3, DType::F8_E5M2),
                          kNumbers = kFloats | kIntegers | kStored | set_of(DType::Bool);
// The format in which arithmetic on numbers of this one is done: f32 for halves, f64, or i64 for integers and
// bool.
constexpr DType computed_in(DType t) {
  return t == DType::F64 ? DType::F64 : has(kFloats, t) ? DType::F32 : DType::I64;
}
// The formats of arithmetic in this one.
constexpr DTypeSet computed_as(DType t) {
  return t == DType::F64   ? set_of(DType::F64)
         : t == DType::F32 ? kFloats & ~set_of(DType::F64)
                           : kIntegers | set_of(DType::Bool);
}

// The names of a set's formats, in the order of dtypes.def: "f32, f16, q4_0".
std::string names_of(DTypeSet);

// Finds a format by name, ignoring case ("Q4_K", "q4_k"), or by its type id in GGUF files.
std::optional<DType> dtype_named(std::string_view name);
std::optional<DType> dtype_of_gguf(uint32_t id);

}  // namespace gimbal
