// When the ops of a program run: as many as can be between two points where the threads wait for each other.
// Found once, by compile(), from the memory that each op reads and writes; nothing is known about the ops
// but that, and which of them treat every row by itself.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/abi.h"

namespace gimbal::cpu {

// Either one op, or ops by row that one thread does one after the other for a row: the row stays in its
// cache, and nobody waits between them. All ops of a chain compute the same rows.
struct Chain {
  uint32_t begin, end;  // in Schedule::order
};

// Chains that share no memory which one of them writes: their units may be computed in any order, by anyone.
struct Phase {
  uint32_t begin, end;  // in Schedule::chains
  bool single;          // one unit at most, whatever the step brings: nothing to share among threads
};

struct Schedule {
  std::vector<uint32_t> order;  // every op once, as an index into gimbal_program::ops
  std::vector<Chain> chains;
  std::vector<Phase> phases;
  // Phases that several threads can share; in one step they wait for each other at most so often.
  int shared_phases() const;
};

// `row_inputs` has one entry per op: 0 when a unit of the op is anything but a row, else the inputs of which
// unit r reads row r alone (bit i: in[i]); the others it reads anywhere. An op by row writes row r of its
// output, or anywhere in it when that is a cache.
Schedule make_schedule(const gimbal_program&, const std::vector<uint32_t>& row_inputs);

// Rows that a value has room for, whatever a step brings.
inline int32_t capacity(const gimbal_value& v) { return std::max(1, v.dim[v.rank - 1]); }

// The value whose extent says how many rows an op computes: its output; for what is written to a cache, x.
const gimbal_value& value_of_rows(const gimbal_op&, const gimbal_value* values);

}  // namespace gimbal::cpu
