// Helpers for the structs of abi.h, for the engine and for backends.
#pragma once
#include <algorithm>
#include <span>

#include "device/abi.h"
#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

static_assert(GIMBAL_MAX_RANK == kMaxRank);
static_assert(sizeof(OpParams) == sizeof(gimbal_op::param) &&
              offsetof(OpParams, i) == sizeof(gimbal_op::param.f));

inline OpParams params_of(const gimbal_op& op) {
  OpParams p;
  std::copy(std::begin(op.param.f), std::end(op.param.f), p.f);
  std::copy(std::begin(op.param.i), std::end(op.param.i), p.i);
  return p;
}
inline void set_params(gimbal_op& op, const OpParams& p) {
  std::copy(std::begin(p.f), std::end(p.f), op.param.f);
  std::copy(std::begin(p.i), std::end(p.i), op.param.i);
}

// The values that an op reads and writes.
inline std::span<const uint16_t> inputs_of(const gimbal_op& op) { return {op.in, op.inputs}; }
inline std::span<const uint16_t> outputs_of(const gimbal_op& op) { return {op.out, op.outputs}; }

// Capacity of a value in rows: its last dimension.
inline int64_t rows_of(const gimbal_value& v) { return v.rank ? v.dim[v.rank - 1] : 1; }
// Values per row: all dimensions but the last.
inline int64_t row_values(const gimbal_value& v) {
  int64_t n = 1;
  for (int i = 0; i + 1 < v.rank; i++) n *= v.dim[i];
  return n;
}
// The number of its rows in one step.
inline int64_t rows_in_step(const gimbal_value& v, gimbal_step step) {
  if (v.extent == GIMBAL_STEP_ROWS) return std::min<int64_t>(step.rows, rows_of(v));
  if (v.extent == GIMBAL_OUT_ROWS) return std::min<int64_t>(step.out_rows, rows_of(v));
  return rows_of(v);
}

inline Shape shape_of(const gimbal_value& v) {
  Shape s;
  s.type = DType(v.dtype), s.rank = v.rank;
  std::copy(std::begin(v.dim), std::end(v.dim), s.dim);
  return s;
}
// Sets a value's type, dimensions, and dense strides.
inline void set_shape(gimbal_value& v, const Shape& s) {
  v.dtype = uint8_t(s.type), v.rank = uint8_t(s.rank);
  int64_t stride = 1;
  for (int i = 0; i < kMaxRank; i++) v.dim[i] = s.dim[i], v.stride[i] = stride, stride *= s.dim[i];
}

}  // namespace gimbal
