// Test inputs for every kernel: shapes at and around the sizes where kernels switch strategies, for each
// format. The conformance tests, `gimbal verify` and the kernel benchmark share them. The cases of an op are
// in its file of ops/defs/.
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
  // shape.bytes() bytes. For a cache: f32 rows [hd, heads, n] to write into it; row i is position i / S of
  // sequence 1 + i % S, where the page table has 1 + S sequences. For a view: all memory that it lies in.
  std::vector<std::byte> dense;
  // Of a view: elements from one index of each dim to the next, and the place of the first element. Empty:
  // no view.
  std::vector<int64_t> stride = {};
  int64_t offset = 0;
};

// Where the elements of an input lie, in elements from the begin of its memory.
std::vector<int64_t> places_of(const CaseInput&);
// The elements of an input side by side: shape.bytes() bytes.
std::vector<std::byte> dense_bytes(const CaseInput&);

struct Case {
  std::string name;  // "mat_mul q8_0 k=288 n=33 rows=5"
  OpKind kind;       // the op under test; for ops that fill caches, the op that reads them
  OpParams params;
  std::vector<CaseInput> inputs;
  // Of ops that read rows:
  int rows = 1;      // output rows to compute ...
  int capacity = 1;  // ... out of this capacity; the other rows must not be written
  // Format of the caches among the inputs.
  DType cache_type = DType::F32;
};

// Cases for kernels named by this format (OpCheck::named_by). Deterministic. Empty for formats that the op
// does not support.
std::vector<Case> cases(OpKind kind, DType named);

// Allowed error of a float kernel: |got - want| <= tolerance(op, inputs) * the magnitude of the reference's
// terms. Derived from the number of roundings that the op's definition allows, each with a relative error of
// 2^-24. `inputs`: shapes as in Case.
double tolerance(OpKind kind, std::span<const Shape> inputs);

}  // namespace gimbal
