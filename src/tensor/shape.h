// The type and size of a tensor, without its data.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensor/dtype.h"

namespace gimbal {

inline constexpr int kMaxRank = 8;

struct Shape {
  DType type = DType::F32;
  int rank = 1;                                      // 0 to kMaxRank
  int64_t dim[kMaxRank] = {1, 1, 1, 1, 1, 1, 1, 1};  // dim[0] varies fastest: one row; unused: 1

  Shape() = default;
  // At most kMaxRank dimensions.
  Shape(DType t, std::initializer_list<int64_t> dims) : type(t), rank(0) {
    for (int64_t d : dims) dim[rank++] = d;
  }

  int64_t count() const { return dim[0] * rows(); }
  int64_t rows() const {  // product of all dimensions but the first
    int64_t n = 1;
    for (int i = 1; i < rank; i++) n *= dim[i];
    return n;
  }
  // The slowest-varying dimension: a step's rows, where it has rows.
  int64_t& last() { return dim[rank > 1 ? rank - 1 : 0]; }
  int64_t last() const { return dim[rank > 1 ? rank - 1 : 0]; }
  int64_t bytes() const { return row_bytes(type, dim[0]) * rows(); }  // dense; dim[0] a multiple of the block
  bool operator==(const Shape&) const = default;
};

// "q4_0[2048, 512]": the type and the used dimensions, fastest-varying first.
std::string to_string(const Shape&);

}  // namespace gimbal
