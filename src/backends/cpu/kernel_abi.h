// What a kernel object may see: plain structs, <stdint.h>, its vec.h. No STL, no inline functions with
// external linkage: these files are built with -mavx512 and friends, and any weak symbol that they export
// could replace the baseline copy at link time. A test runs nm over the objects to keep it so.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "device/abi.h"

struct CpuTask {  // one op, bound to memory
  const gimbal_op* op;
  const gimbal_value* out;
  const gimbal_value* in[GIMBAL_MAX_INPUTS];
  unsigned char* y;
  const unsigned char* x[GIMBAL_MAX_INPUTS];
  int32_t rows;  // rows of the output to compute, the value's extent resolved
  // Of a product with one of several matrices. Not null: row r is row row_list[r] of y, and row row_list[r] /
  // x_share of x.
  const int32_t* row_list = nullptr;
  int32_t x_share = 1;
  int32_t shift = 0;  // outputs of the first tile that are another matrix's
};

struct CpuWork {
  int64_t items;      // work items: independent pieces; each output value belongs to one of them
  double operations;  // of all of them, roughly: small ops are not worth waking a thread
};

// For how many rows a program must be planned, so that a kernel takes it.
enum class CpuRows : uint8_t {
  Any,
  Few,      // 2 to kMaxFewRows
  Prompts,  // fewer than kPromptRows are not worth its preparations
  Many,     // more than kMaxFewRows
};
constexpr int32_t kMaxFewRows = 32, kPromptRows = 16;

// What a kernel says of itself in its variant's table. The backend makes the whole claim of it when it is
// opened (device/claims.h), so that hundreds of rows stay small in the file.
struct CpuClaim {
  const char* name;
  uint16_t op;
  int16_t rank;
  uint8_t format;  // a DType: of the weights or the cache, or what quantize gives
  uint8_t x;       // of a product's activations
  CpuRows rows;
  float tolerance = 0;  // not 0: a fast row, and gimbal_kernel_info::tolerance
};

// A row: what it claims, and the private half that computes work items [begin, end).
template <class Info>
struct CpuKernelOf {
  Info info;  // first: of a CpuKernel, the engine sees this
  CpuWork (*work)(const CpuTask&);
  void (*launch)(const CpuTask&, int64_t begin, int64_t end);
  // A work item is a row. Item r writes row r of the output (a cache: where the step data say), and reads row
  // r alone of the inputs that the op reads row by row (OpDef::row_inputs). See schedule.h.
  bool by_row = false;
  // With several rows: so many items, one after the other, cost less in one launch than in several.
  int32_t items_at_once = 1;
  // Not 0: with one row, item i writes the n = item_outputs floats y[i * n] to y[i * n + n - 1] (of the last
  // item, those that the row has), and nothing else. So an idle thread may compute it again in scratch
  // memory. At most 16.
  int32_t item_outputs = 0;
  // Not null (and item_outputs is not 0): with one row, `items` items of each of two tasks, from `begin` and
  // `other_begin` on, in turn. The tasks differ in nothing but where they write.
  void (*launch_two)(const CpuTask&, int64_t begin, const CpuTask& other, int64_t other_begin,
                     int64_t items) = nullptr;
};
using CpuRow = CpuKernelOf<CpuClaim>;
using CpuKernel = CpuKernelOf<gimbal_kernel_info>;
