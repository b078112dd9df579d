// Shared by ops that read and write caches: the position's index in a cache, and the cases, because only
// attention can check the contents of a cache.
#pragma once
#include <algorithm>

#include "ops/defs/parts.h"

namespace gimbal::ops {

struct CacheIndex {  // index of position `pos` of a row's sequence
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

// Cases of attention. `of` is the op under test, for their names.
std::vector<Case> attention_cases(OpKind of, DType cache);

// Positions, sequences and pages of a case's rows. Row r is `step` * r positions before the end of its
// sequence.
inline int case_position(int positions, int step, int row) { return std::max(0, positions - 1 - step * row); }
void add_places(Case&, int positions, int pages, int sequences, int step);

// Benchmark sizes.
inline constexpr int kBenchHeadDim = 128, kBenchHeads = 32, kBenchKvHeads = 8;
// A cache of the usual size, and the position, sequence and pages of `rows` rows at its end: few rows
// continue a long text, many rows are a prompt of their own.
struct BenchPlace {
  BenchInput cache, position, sequence, pages;
  BenchPlace(DType cache_type, int rows);
};

}  // namespace gimbal::ops
