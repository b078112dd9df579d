// Where every activation lives: values whose lifetimes do not meet share memory.
#pragma once
#include "program/program.h"

namespace gimbal {

// Gives every value of Slot::Work its offset, and the slot its size. Lifetimes run from the op that writes a
// value to the last op that reads it or a view of it; an op's output never shares memory with its inputs.
// What a matrix product of one row reads lives to the end of the program: while a thread is preempted in a
// product, others compute its part and go on, and nothing may overwrite what it still reads (backends/cpu).
void plan_work(Program&, uint64_t alignment);

}  // namespace gimbal
