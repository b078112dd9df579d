// The check of a span of embeddings from another process or a file. Plain values only: a model checker reads
// this header (proofs/protocol.cpp).
#pragma once
#include <limits>

namespace gimbal {

// Whether the rows `first` to `first + rows` are rows of `all`, and the positions from `position` on are
// ints.
constexpr bool is_row_range(int position, int first, int rows, int all) {
  return position >= 0 && first >= 0 && rows > 0 && rows <= all - first &&
         rows <= std::numeric_limits<int>::max() - position;
}

}  // namespace gimbal
