// What cache_write and attention share: where a position lies in a cache, and the cases, since only attention
// can tell what was written.
#pragma once
#include "ops/defs/parts.h"

namespace gimbal::ops {

struct CacheIndex {  // where position `pos` of a row's sequence lies in a cache
  const reference::Tensor &sequence, &pages;
  int64_t page(int row, int64_t pos) const {
    const auto s = int64_t(sequence.values[size_t(row)]);
    return int64_t(pages.values[size_t(s * pages.shape.dim[0] + pos / kPagePositions)]);
  }
  size_t element(const Shape& c, int row, int64_t pos, int head, int d) const {
    return size_t(((page(row, pos) * kPagePositions + pos % kPagePositions) * c.dim[1] + head) * c.dim[0] +
                  d);
  }
};

// Cases of attention; called `of` in their names: the op whose kernels they are for.
std::vector<Case> attention_cases(OpKind of, DType cache);

// Sizes to measure with.
inline constexpr int kBenchHeadDim = 128, kBenchHeads = 32, kBenchKvHeads = 8;
// Cache of the usual size, and position, sequence and pages of `rows` rows at its end: a few rows follow on a
// long text, many are a prompt of their own.
struct BenchPlace {
  BenchInput cache, position, sequence, pages;
  BenchPlace(DType cache_type, int rows);
};

}  // namespace gimbal::ops
