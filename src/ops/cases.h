// The inputs that every kernel must get right: shapes at and around the sizes where kernels change their
// ways, for each format. One list serves the conformance tests, `gimbal verify` and the kernel benchmark.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "ops/op.h"
#include "tensor/shape.h"

namespace gimbal {

struct CaseInput {
  Shape shape;
  // shape.bytes() of them. For a cache: f32 rows [hd, heads, n] to be written into it; row i is position i /
  // S of sequence 1 + i % S, where the table of pages has 1 + S sequences.
  std::vector<std::byte> dense;
  bool weight = false;  // may be packed by the device
};

struct Case {
  std::string name;  // "mat_mul q8_0 k=288 n=33 rows=5"
  OpKind kind;
  OpParams params;
  std::vector<CaseInput> inputs;
  int rows = 1;      // rows of the output that are to be computed ...
  int capacity = 1;  // ... of as many as there is room for: the others must not be touched
};

// Cases of an op whose first input has format `in0` (for Attention and CacheWrite: whose cache has).
// Deterministic. Empty for formats that no op takes.
std::vector<Case> cases(OpKind kind, DType in0);

// How far a float kernel may be from the reference: |got - want| <= tolerance(op, inputs) * magnitude of the
// reference's terms. Derived from the number of roundings that the op's definition allows, each of relative
// error 2^-24.
double tolerance(OpKind kind, const std::vector<Shape>& inputs);

}  // namespace gimbal
