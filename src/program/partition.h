// Divides a recorded program into pipeline stages, one per device. Every stage gets the step's input data. A
// value that crosses stages is transferred through the host: from the output slot of its stage to the step
// slot of the reader, after the step's own data. Weights and state lie on the device that uses them, in its
// layout; a weight used by two stages (an embedding table that is also the output head) lies on both.
// embedding table that is the output head, too) lies in both.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/program.h"

namespace gimbal {

// A value that a later stage reads. Its rows are contiguous on both sides, so only the rows of the step are
// moved.
struct Transfer {
  size_t from;            // the stage that computes it
  uint64_t read_offset;   // in that stage's output slot
  uint64_t write_offset;  // in the receiving stage's step slot
  uint64_t row_bytes;
  int32_t rows;          // planned maximum
  gimbal_extent extent;  // determines how many rows a step moves
  int32_t moved(gimbal_step s) const {
    return extent == GIMBAL_STEP_ROWS ? s.rows : extent == GIMBAL_OUT_ROWS ? s.out_rows : rows;
  }
};

struct StageProgram {
  Program program;
  std::vector<Transfer> in;      // by increasing write_offset
  uint64_t step_bytes = 0;       // size of the step's own data, at the start of every stage's step slot
  std::vector<uint16_t> values;  // by index in the whole program: the value's index here, or kNoValue
};
inline constexpr uint16_t kNoValue = UINT16_MAX;

// `stage_of_op`: for every op of `whole`, its index into `devices`; never decreases. A stage has the step's
// inputs and all values that its ops use. A weight that no op uses is in the stage of its layer, and such
// state in the first one, so programs with different ops agree on the locations of both. Errors: OutOfMemory
// if a stage would need more bytes than any device can have; Failed if the stages are not in order.
Result<std::vector<StageProgram>> partition(const Program& whole, std::span<const size_t> stage_of_op,
                                            std::span<const Device* const> devices);

}  // namespace gimbal
