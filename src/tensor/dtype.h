// How numbers are stored: one enum for plain and quantized formats alike, generated from dtypes.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gimbal {

inline constexpr uint16_t kNotInFiles = 0xffff;

enum class DType : uint8_t {
#define GIMBAL_DTYPE(id, ...) id,
#include "tensor/dtypes.def"
#undef GIMBAL_DTYPE
  Count
};

struct DTypeInfo {
  const char* name;  // lower case, as users type it
  uint16_t block;    // values per block
  uint16_t bytes;    // bytes per block
  uint16_t gguf;     // type id in GGUF files
};

inline constexpr DTypeInfo kDTypes[] = {
#define GIMBAL_DTYPE(id, name, block, bytes, gguf) {name, block, bytes, gguf},
#include "tensor/dtypes.def"
#undef GIMBAL_DTYPE
};

constexpr const DTypeInfo& info(DType t) { return kDTypes[int(t)]; }

// Bytes of n values that start at a block boundary; n must be a multiple of the block.
constexpr int64_t row_bytes(DType t, int64_t n) { return n / info(t).block * info(t).bytes; }

// I2_S keeps one f32 scale for a whole tensor, padded to 32 bytes, after the values.
constexpr int64_t tensor_tail_bytes(DType t) { return t == DType::I2_S ? 32 : 0; }

// A set of formats as bits, for kernel tables.
using DTypeSet = uint64_t;
static_assert(int(DType::Count) <= 64);
constexpr DTypeSet set_of() { return 0; }
template <class... T>
constexpr DTypeSet set_of(DType t, T... rest) {
  return (DTypeSet(1) << int(t)) | set_of(rest...);
}
constexpr bool has(DTypeSet s, DType t) { return s >> int(t) & 1; }

// The names of a set's formats for people, in the order of dtypes.def: "f32, f16, q4_0".
std::string names_of(DTypeSet);

// Looks a format up by its name, in any case ("Q4_K", "q4_k"), or by its id in GGUF files.
std::optional<DType> dtype_named(std::string_view name);
std::optional<DType> dtype_of_gguf(uint32_t id);

}  // namespace gimbal
