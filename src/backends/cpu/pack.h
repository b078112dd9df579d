// Lays weights out for the kernels (layout.h), while loading.
#pragma once
#include <cstdint>

#include "tensor/dtype.h"

namespace gimbal::cpu {

// Rows [begin, end) of a matrix of `columns` x `rows`, from dense blocks at `source` (row 0; behind the last
// row the scale of an I2_S tensor) into `packed` (tile 0), whose padding is zero already. begin is a multiple
// of 16.
void pack(DType type, int64_t columns, int64_t rows, const uint8_t* source, uint8_t* packed, int64_t begin,
          int64_t end);

}  // namespace gimbal::cpu
