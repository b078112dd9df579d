// The inputs that every kernel must get right: shapes at and around the sizes where kernels change their
// ways, for each format. One list serves the conformance tests, `gimbal verify` and the kernel benchmark. The
// cases of an op lie in its file of ops/defs/.
#pragma once
#include <cstddef>
#include <span>
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
};

struct Case {
  std::string name;  // "mat_mul q8_0 k=288 n=33 rows=5"
  OpKind kind;       // of the op that is judged. For an op that fills caches: of the one that reads them
  OpParams params;
  std::vector<CaseInput> inputs;
  int rows = 1;      // rows of the output that are to be computed ...
  int capacity = 1;  // ... of as many as there is room for: the others must not be touched
  // Of the caches among the inputs.
  DType cache_type = DType::F32;
};

// Cases for kernels of an op that are named by this format (OpCheck::named_by). Deterministic. Empty for
// formats that the op does not take.
std::vector<Case> cases(OpKind kind, DType named);

// How far a float kernel may be from the reference: |got - want| <= tolerance(op, inputs) * magnitude of the
// reference's terms. Derived from the number of roundings that the op's definition allows, each of relative
// error 2^-24. `inputs`: shapes as in Case.
double tolerance(OpKind kind, std::span<const Shape> inputs);

}  // namespace gimbal
