// Where the elements of a tensor lie in its memory: dims, strides and an offset. Views are made here, without
// a copy and without a kernel. Dims are in the user's order, slowest first.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensor/shape.h"

namespace gimbal {

struct Layout {
  int rank = 0;  // 0 to kMaxRank
  int64_t dim[kMaxRank] = {},
          stride[kMaxRank] = {};  // strides in elements, of any sign; 0 repeats an element
  int64_t offset = 0;             // of element [0, ..., 0], in elements

  bool operator==(const Layout&) const = default;
  int64_t count() const;  // elements; 1 for rank 0
  std::span<const int64_t> dims() const { return {dim, size_t(rank)}; }
  // Row-major without gaps. Dims of 0 or 1 may have any stride.
  bool dense() const;
};

// Row-major. At most kMaxRank dims, none negative; their product fits 63 bits: see check_dims().
Layout dense_layout(std::span<const int64_t> dims);

// Why these are no dims of a tensor: "more than 8 dimensions"; nullopt if they are.
std::optional<std::string> check_dims(std::span<const int64_t> dims);

// ---- views. All arguments must be checked by the caller, but for reshaped(), which may need a copy.
Layout permuted(const Layout&, std::span<const int> order);
Layout narrowed(const Layout&, int dim, int64_t begin, int64_t size, int64_t step);  // step: not 0
Layout selected(const Layout&, int dim, int64_t at);
Layout flipped(const Layout&, int dim);
Layout unfolded(const Layout&, int dim, int64_t size, int64_t step);
// Stride 0 where a dim of 1 or a missing dim is repeated. nullopt: the dims do not fit.
std::optional<Layout> broadcast(const Layout&, std::span<const int64_t> dims);
// The same elements in the same order; as many as before. nullopt: only a copy can have these dims.
std::optional<Layout> reshaped(const Layout&, std::span<const int64_t> dims);

// NumPy's rule for the dims of several operands: aligned at the last one, a 1 repeats. nullopt: they do not
// fit.
std::optional<Layout> broadcast_dims(const Layout& a, const Layout& b);

// The lowest and the highest element that it reaches, relative to the start of the memory. Of a layout with
// elements.
struct MemoryRange {
  int64_t begin, end;  // end: one past the last
};
MemoryRange reach(const Layout&);

// Whether two elements of it may lie at one place: then it must not be written.
bool overlaps_itself(const Layout&);

// "[3, 5]"
std::string to_string(std::span<const int64_t> dims);

}  // namespace gimbal
