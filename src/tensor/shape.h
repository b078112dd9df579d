// The type and size of a tensor, without its data.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensor/dtype.h"

namespace gimbal {

struct Shape {
  DType type = DType::F32;
  int rank = 1;
  int32_t dim[4] = {1, 1, 1, 1};  // dim[0] is the fastest-varying: one row; unused ones are 1

  Shape() = default;
  Shape(DType t, std::initializer_list<int32_t> dims) : type(t), rank(0) {
    for (int32_t d : dims) dim[rank++] = d;
  }

  int64_t count() const { return int64_t(dim[0]) * dim[1] * dim[2] * dim[3]; }
  int64_t rows() const { return int64_t(dim[1]) * dim[2] * dim[3]; }
  int64_t bytes() const { return row_bytes(type, dim[0]) * rows(); }  // dense; dim[0] a multiple of the block
  bool operator==(const Shape&) const = default;
};

// "q4_0[2048, 512]": the type and the used dimensions, fastest-varying first.
std::string to_string(const Shape&);

}  // namespace gimbal
