// Peak arithmetic throughput: loops of multiplications and additions on registers, compiled once per
// instruction set like the kernels. Kernel speeds are compared with them.
#pragma once
#include <stdint.h>

struct CpuPeakLoops {
  int16_t rank;                              // of the instruction set, as for its kernels
  int32_t fp32_operations, int8_operations;  // per round; a multiply-add counts as two
  float (*fp32)(int64_t rounds);             // the result is meaningless
  int32_t (*int8)(int64_t rounds);
};
