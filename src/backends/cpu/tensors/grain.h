// The parts in which elements are computed. Kernels and the programs that join their ops must agree.
#pragma once
#include <stdint.h>

// Elements of a work item: a part of two values of f64 stays in an L1 cache of 32 KB. Part r of a dense value
// is its elements from r * kGrain on.
constexpr int64_t kGrain = 2048;
