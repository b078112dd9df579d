// Memory planning of activations: values with disjoint lifetimes share memory.
#pragma once
#include "program/program.h"

namespace gimbal {

// Gives every value of Slot::Work its offset, and the slot its size. Lifetimes run from the op that writes a
// value to the last op that reads it or a view of it; an op's output never shares memory with its inputs.
// Inputs of single-row matrix products live to the end of the program: if a thread is preempted in a product,
// others compute its part and continue, and its inputs must not be overwritten (backends/cpu).
void plan_work(Program&, uint64_t alignment);

}  // namespace gimbal
