// Passes over a recorded program before a device compiles it: which rows are computed, and where activations
// live.
#pragma once
#include <optional>
#include <span>

#include "program/program.h"

namespace gimbal {

// Most rows of a prompt only feed the KV cache: no logits are requested for them. This pass computes the ops
// after the last layer's attention for the requested rows only, which saves a fifth of a layer's work or
// more.
//
// Moves the program's select_rows towards its beginning: ops whose results are used in the selected rows only
// compute just these rows (GIMBAL_OUT_ROWS), and their inputs are selected instead. An op moves if it reads
// its inputs row by row and keeps no state; every computed row keeps its bits. Run it before plan_work().
// `failed`: as in Program::add().
void compute_wanted_rows_only(Program&, std::optional<Error>& failed);

// Memory planning of activations: values with disjoint lifetimes share memory.
//
// Gives every value of Slot::Work its offset, and the slot its size. Lifetimes run from the op that writes a
// value to the last op that reads it or a view of it; an op's output never shares memory with its inputs.
// Inputs of single-row matrix products live to the end of the program: if a thread is preempted in a product,
// others compute its part and continue, and its inputs must not be overwritten (backends/cpu).
// With Kept::ProductInputs inputs of all matrix products, also those before quantization, live as long, for a
// watcher. A second call plans anew. Errors: OutOfMemory, a slot larger than any device.
//
// `passed`: values that another stage computes or reads (program/partition.h), in Slot::Step or Slot::Output.
// They are planned in the same way, behind the end of their slot.
enum class Kept { Needed, ProductInputs };
struct PassedValue {
  uint16_t value;
  size_t op;  // the value is in use there, too: from its arrival on, or until it is read
};
Status plan_work(Program&, uint64_t alignment, Kept keep = Kept::Needed,
                 std::span<const PassedValue> passed = {});

}  // namespace gimbal
