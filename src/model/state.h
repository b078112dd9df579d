// The state that a model keeps of each sequence between steps, as its architecture declares it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ops/op.h"

namespace gimbal {

enum class StateKind : uint8_t {
  Paged,      // data per position, in pages of kPagePositions: keys, values
  Recurrent,  // one page per sequence that every position changes; rewound by checkpoints
};

// Values of one pool have the same pages, so that one table per sequence serves them all.
struct StatePool {
  StateKind kind = StateKind::Paged;
  int window = 0;  // Paged: positions that a row attends to, including its own; 0: all
  int pages = 0;   // total
  int table = 0;   // entries of one sequence in the page table of a step
};

// The first position that a row at `position` attends to.
inline int window_begin(const StatePool& p, int position) {
  return p.window ? std::max(0, position - p.window + 1) : 0;
}

// The number of checkpoints of a sequence in a recurrent pool, and the positions between two of them. A
// mark (Sequence::mark) is one more.
inline constexpr int kMaxCheckpoints = 4, kCheckpointEvery = 256;

// Positions that a windowed pool keeps before the window, so that a few tokens can be dropped.
inline constexpr int kWindowSlack = kPagePositions;

// Fills in `table` and `pages`. `positions`: of cache for all sequences together; each needs at most
// `context` of them. A step has at most `batch` rows. `marks`: sequences are marked.
StatePool sized(StatePool pool, int sequences, int context, int64_t positions, int batch, bool marks);

}  // namespace gimbal
