// Where every activation lives: values whose lifetimes do not meet share memory.
#pragma once
#include "program/program.h"

namespace gimbal {

// Gives every value of Slot::Work its offset, and the slot its size. Lifetimes run from the op that writes a
// value to the last op that reads it or a view of it; an op's output never shares memory with its inputs.
void plan_work(Program&, uint64_t alignment);

}  // namespace gimbal
