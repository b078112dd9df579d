// What a CPU could compute at most: loops that do nothing but multiply and add, out of registers, one set per
// instruction set like the kernels. Speeds are compared with them.
#pragma once
#include <stdint.h>

struct CpuPeakLoops {
  int16_t rank;                              // of the instruction set, as its kernels have it
  int32_t fp32_operations, int8_operations;  // of one round; a multiplication and an addition are two
  float (*fp32)(int64_t rounds);             // the results mean nothing
  int32_t (*int8)(int64_t rounds);
};
