// The formats of plain numbers by their names in safetensors and npy files, and sizes of arrays.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace gimbal {

// "BF16". nullopt for a format that this build does not have.
std::optional<DType> dtype_of_safetensors(std::string_view name);
const char* safetensors_name(DType);  // nullptr: such files do not have it
// The letter and size of NumPy's descr, without the byte order: "f4". nullopt, nullptr: as above.
std::optional<DType> dtype_of_numpy(std::string_view letters);
const char* numpy_name(DType);

// Bytes of an array with these dims, in any order; nullopt if values or bytes pass 2^63.
std::optional<uint64_t> bytes_of_dims(DType, std::span<const int64_t> dims);
// "[3 x 4]", the last dim first as files name them.
std::string dims_text(std::span<const int64_t> dims);

// Writes all bytes of a tensor, piece by piece.
Status copy_tensor(uint64_t bytes, const std::function<Status(uint64_t offset, void* to, size_t n)>& read,
                   DraftFile& to);

}  // namespace gimbal
