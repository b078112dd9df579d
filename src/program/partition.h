// Divides a recorded program into stages, the parts of a model on one device each. Every stage gets the
// step's input data. Neighbouring ops of one stage are a part; the parts are computed in turns, in the order
// of the recorded ops. A value that another stage reads is transferred through the host, before the part that
// reads it first: from the output slot of its stage to the step slot of the reader, after the step's own
// data. Weights and state lie on the device that uses them, in its layout; a weight used by two stages (an
// embedding table that is also the output head) lies on both.
#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "program/passes.h"
#include "program/program.h"

namespace gimbal {

// A value from another stage. Its rows are contiguous on both sides, so only the rows of the step are moved.
struct Transfer {
  size_t from;            // the stage that computes it
  uint16_t value;         // its index in the receiving program
  uint64_t read_offset;   // in that stage's output slot
  uint64_t write_offset;  // in the receiving stage's step slot
  uint64_t row_bytes;
  int32_t rows;          // planned maximum
  gimbal_extent extent;  // determines how many rows a step moves
  int32_t moved(gimbal_step s) const {
    return extent == GIMBAL_STEP_ROWS ? s.rows : extent == GIMBAL_OUT_ROWS ? s.out_rows : rows;
  }
};

// Ops of a stage that are computed without an interruption by other stages.
struct StagePart {
  OpRange ops;
  size_t turn = 0;             // its place in the order of the parts of all stages
  std::vector<Transfer> in{};  // before it
};

struct StageProgram {
  Program program;
  std::vector<StagePart> parts;  // by rising turn; none: no ops
  // At the start of every stage's step slot, the step's own data; of the output slot, the model's outputs.
  // Transferred values follow.
  uint64_t step_bytes = 0, output_bytes = 0;
  std::vector<uint16_t> values;  // by index in the whole program: the value's index here, or kNoValue
  std::vector<size_t> from;      // of the ops: the whole program's op that this is, or for which it quantizes
};
inline constexpr uint16_t kNoValue = UINT16_MAX;

// The stages of a program, as indices into a list of devices.
struct StageOf {
  std::vector<size_t> ops;  // of every op
  // Of every weight, used if no op reads it. Empty: that of its layer.
  std::vector<size_t> unread_weights = {};
};

// A stage has the step's inputs and all values that its ops use. A quantization is computed where its result
// is read, if need be in several stages. A weight that no op uses is in its stage of `unread_weights`, and
// such state in the first one, so programs with different ops agree on the locations of both. `by_layer`:
// parts also end with a layer. Errors: OutOfMemory if a stage would need more bytes than any device can have;
// Unsupported if two stages would update the same state, or another stage than the last computes an output of
// the model.
Result<std::vector<StageProgram>> partition(const Program& whole, const StageOf&,
                                            std::span<const Device* const> devices, bool by_layer = false,
                                            Kept keep = Kept::Needed);

// The parts of a program that is not divided between stages.
std::vector<StagePart> parts_of(const Program&, bool by_layer);

}  // namespace gimbal
