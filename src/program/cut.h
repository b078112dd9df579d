// Cuts a recorded program into one per device. The steps' own data goes to every part; an activation that one
// part computes and a later one reads is handed over through the host: out of the output slot of the one,
// into the step slot of the other, behind the step's own data. Weights and caches lie where they are used, in
// that device's layout; a weight that two parts use (an embedding table that is the output head, too) lies in
// both.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

// A value that one part gives to a later one. Its rows lie one after the other in both places, so as many are
// moved as the step has.
struct HandOver {
  size_t from;            // the part that computes it
  uint64_t read_offset;   // in that part's output slot
  uint64_t write_offset;  // in the receiving part's step slot
  uint64_t row_bytes;
  int32_t rows;          // as planned
  gimbal_extent extent;  // how many of them a step moves
  int32_t moved(gimbal_step s) const {
    return extent == GIMBAL_STEP_ROWS ? s.rows : extent == GIMBAL_OUT_ROWS ? s.out_rows : rows;
  }
};

struct CutPart {
  Program program;
  std::vector<HandOver> in;  // by rising write_offset
  uint64_t step_bytes = 0;   // of the step's own data, which begins every part's step slot, the same in each
};

// `part_of_op`: for every op of `whole`, its index into `devices`; never falls. What no op of a part uses
// does not exist in it, except for the step's inputs. Errors: OutOfMemory when a part would need more bytes
// than any device can have; Failed when the parts are not in order.
Result<std::vector<CutPart>> cut(const Program& whole, std::span<const size_t> part_of_op,
                                 std::span<const Device* const> devices);

}  // namespace gimbal
