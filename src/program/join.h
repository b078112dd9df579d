// Neighbouring ops that compute each element from the elements at its place (GIMBAL_BY_ELEMENT) are joined: a
// value of Slot::Work that only they use gets the slot GIMBAL_LOCAL and no memory, because the device
// computes them part by part and keeps a part in its cache. No bit changes.
#pragma once
#include <string>
#include <vector>

#include "program/program.h"

namespace gimbal {

struct Joined {
  std::vector<OpRange> together;  // of each op: those it is computed together with, and itself
  std::vector<std::string> why;   // of each op: where its result goes and why; empty if it is not by element
};
// Kernels must be assigned, memory not planned.
Joined join_by_element(Program&, const Device&);

// plan_work() of passes.h for joined ops: any part of their values may be in use until the last one is done.
Status plan_work(Program&, uint64_t alignment, const Joined&);

}  // namespace gimbal
