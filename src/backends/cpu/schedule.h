// Groups a program's ops into as few levels as possible; threads synchronize between levels. Computed once,
// by compile(), from the memory that each op reads and writes and from the ops that work row by row.
// compiled_program.h defines the terms.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/abi.h"
#include "device/values.h"

namespace gimbal::cpu {

// Fused ops: a single op, or row-wise ops that a worker computes one after the other for each row. The row
// stays in its cache, without synchronization between the ops. All ops of a group compute the same rows.
// Or ops by element, with values between them that have no memory: likewise, for each part (tensors/grain.h).
struct Group {
  uint32_t begin, end;  // in Schedule::order
  bool parts = false;   // ops by element
};

// Groups without write conflicts: their work items may be computed in any order.
struct Level {
  uint32_t begin, end;  // in Schedule::groups
  bool single;          // at most one work item in any step: nothing to share among threads
};

struct Schedule {
  std::vector<uint32_t> order;  // a permutation of the indices into gimbal_program::ops
  std::vector<Group> groups;
  std::vector<Level> levels;
  // Levels that several threads can share: the most synchronizations of a step.
  int shared_levels() const;
};

// `row_inputs` has one entry per op: 0 if its work items are not rows, else the inputs of which item r reads
// only row r (bit i: in[i]); other inputs are read anywhere. A row-wise op writes row r of its output, or
// anywhere in a cache.
Schedule make_schedule(const gimbal_program&, const std::vector<uint32_t>& row_inputs);

// Of each op the first one of its group by the values without memory (GIMBAL_LOCAL): ops from the one that
// writes such a value to the last that reads it. Itself, if there is none.
std::vector<uint32_t> first_of_parts(const gimbal_program&);

// Whether a later op of the program overwrites an input of this op: a thread that still computes this op
// while the others have continued might then read overwritten data.
bool overwritten_later(const gimbal_program&, size_t op);

// A value's capacity in rows; at least 1.
inline int32_t capacity(const gimbal_value& v) { return int32_t(std::max<int64_t>(1, rows_of(v))); }

// The value whose extent defines the number of rows of an op: its output; for writes to a cache, x.
const gimbal_value& value_of_rows(const gimbal_op&, const gimbal_value* values);

}  // namespace gimbal::cpu
