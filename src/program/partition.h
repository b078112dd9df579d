// Divides a recorded program into one per device: the stages that a step passes one after the other. The
// step's own data goes to every stage. A value that one stage computes and a later one reads is transferred
// through the host: out of the output slot of the one, into the step slot of the other, behind the step's own
// data. Weights and state lie where they are used, in that device's layout; a weight that two stages use (an
// embedding table that is the output head, too) lies in both.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

// A value on its way from one stage to a later one. Its rows lie one after the other in both places, so as
// many are moved as the step has.
struct Transfer {
  size_t from;            // the stage that computes it
  uint64_t read_offset;   // in that stage's output slot
  uint64_t write_offset;  // in the receiving stage's step slot
  uint64_t row_bytes;
  int32_t rows;          // as planned
  gimbal_extent extent;  // how many of them a step moves
  int32_t moved(gimbal_step s) const {
    return extent == GIMBAL_STEP_ROWS ? s.rows : extent == GIMBAL_OUT_ROWS ? s.out_rows : rows;
  }
};

struct StageProgram {
  Program program;
  std::vector<Transfer> in;  // by rising write_offset
  uint64_t step_bytes = 0;   // of the step's own data, which begins every stage's step slot, the same in each
  std::vector<uint16_t> values;  // by the whole program's values: the same one here, or kNoValue
};
inline constexpr uint16_t kNoValue = UINT16_MAX;

// `stage_of_op`: for every op of `whole`, its index into `devices`; never falls. A stage has the step's
// inputs and what its ops use; the first one also has weights and state that no op uses, so that programs
// which differ in their ops alone agree in the places of both. Errors: OutOfMemory when a stage would need
// more bytes than any device can have; Failed when the stages are not in order.
Result<std::vector<StageProgram>> partition(const Program& whole, std::span<const size_t> stage_of_op,
                                            std::span<const Device* const> devices);

}  // namespace gimbal
