// When the ops of a program run: in as few levels as can be, between which threads wait for each other. Found
// once, by compile(), from the memory that each op reads and writes; nothing else is known about the ops but
// which of them compute every row by itself. The terms are explained in compiled_program.h.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/abi.h"
#include "device/values.h"

namespace gimbal::cpu {

// Fused ops: either one op, or ops by row that a worker computes one after the other for each row. The row
// stays in its cache, and nobody waits between them. All ops of a group compute the same rows.
struct Group {
  uint32_t begin, end;  // in Schedule::order
};

// Groups that share no memory which one of them writes: their work items may be computed in any order.
struct Level {
  uint32_t begin, end;  // in Schedule::groups
  bool single;          // one work item at most, whatever the step brings: nothing to share among threads
};

struct Schedule {
  std::vector<uint32_t> order;  // every op once, as an index into gimbal_program::ops
  std::vector<Group> groups;
  std::vector<Level> levels;
  // Levels that several threads can share: in one step they wait for each other at most so often.
  int shared_levels() const;
};

// `row_inputs` has one entry per op: 0 when a work item of the op is anything but a row, else the inputs of
// which item r reads row r alone (bit i: in[i]); the others it reads anywhere. An op by row writes row r of
// its output, or anywhere in it when that is a cache.
Schedule make_schedule(const gimbal_program&, const std::vector<uint32_t>& row_inputs);

// Whether a later op of the program writes to memory that this op reads: then a thread that computes this op
// when the others have gone on might read what is being overwritten.
bool overwritten_later(const gimbal_program&, size_t op);

// Rows that a value has room for, whatever a step brings; at least 1.
inline int32_t capacity(const gimbal_value& v) { return int32_t(std::max<int64_t>(1, rows_of(v))); }

// The value whose extent says how many rows an op computes: its output; for what is written to a cache, x.
const gimbal_value& value_of_rows(const gimbal_op&, const gimbal_value* values);

}  // namespace gimbal::cpu
