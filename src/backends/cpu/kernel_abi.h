// The interface of kernel objects: plain structs, <stdint.h>, the variant's vec.h. No STL and no inline
// functions with external linkage: these files are built with -mavx512 and the like, and any weak symbol that
// they export could replace the baseline copy at link time. A test checks the objects with nm.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "device/abi.h"

struct CpuTask {  // an op bound to memory
  const gimbal_op* op;
  const gimbal_value* out;
  const gimbal_value* in[GIMBAL_MAX_INPUTS];
  unsigned char* y;
  const unsigned char* x[GIMBAL_MAX_INPUTS];
  int32_t rows;  // output rows to compute, after resolving the value's extent
  // For products with one of several matrices. If not null, row r is row row_list[r] of y and row row_list[r]
  // / x_share of x.
  const int32_t* row_list = nullptr;
  int32_t x_share = 1;
  int32_t shift = 0;                 // outputs of the first tile that belong to another matrix
  unsigned char* scratch = nullptr;  // CpuKernelOf::scratch bytes, aligned to 64; their values are undefined
};

struct CpuWork {
  int64_t items;      // work items: independent pieces; each output value belongs to one
  double operations;  // approximate total: waking a thread does not pay for small ops
};

// The number of rows that a program must be planned for to use a kernel.
enum class CpuRows : uint8_t {
  Any,
  Few,      // 2 to kMaxFewRows
  Prompts,  // its preparation does not pay for fewer than kPromptRows
  Many,     // more than kMaxFewRows
};
constexpr int32_t kMaxFewRows = 32, kPromptRows = 16;

// A kernel's claims in its variant's table. The backend expands them when it is opened (device/claims.h), so
// that hundreds of rows stay small in the file.
struct CpuClaim {
  const char* name;
  uint16_t op;
  int16_t rank;
  uint8_t format;  // a DType: of the weights or the cache, or the output of quantize
  uint8_t x;       // of a product's activations
  CpuRows rows;
  float tolerance = 0;  // not 0: a fast row with this gimbal_kernel_info::tolerance
  bool alike = false;   // for all formats with the same facts as `format` (tensor/formats.def)
};

// A row: its claims, and the private function that computes work items [begin, end).
template <class Info>
struct CpuKernelOf {
  Info info;  // first: of a CpuKernel, the engine's view
  CpuWork (*work)(const CpuTask&);
  void (*launch)(const CpuTask&, int64_t begin, int64_t end);
  // Item r writes row r of the output (of a cache: the position of the step data), and reads only row r of
  // the inputs in OpDef::row_inputs: schedule.h. Of ops on tensors: part r of the elements (tensors/grain.h).
  bool by_row = false;
  // With several rows: this many consecutive items are cheaper in one launch than in several.
  int32_t items_at_once = 1;
  // If not 0: with one row, item i writes only the n = item_outputs floats y[i * n] to y[i * n + n - 1] (the
  // last item: as many as the row has). An idle thread may therefore compute it again in scratch memory. At
  // most 16.
  int32_t item_outputs = 0;
  // If not null (requires item_outputs): with one row, interleaves `items` items of two tasks, from `begin`
  // and `other_begin` on. The tasks differ only in their output addresses.
  void (*launch_two)(const CpuTask&, int64_t begin, const CpuTask& other, int64_t other_begin,
                     int64_t items) = nullptr;
  // If not null: the bytes that the op needs beside its values, from its shapes alone. They exist during a
  // step.
  int64_t (*scratch)(const CpuTask&) = nullptr;
};
using CpuRow = CpuKernelOf<CpuClaim>;
using CpuKernel = CpuKernelOf<gimbal_kernel_info>;
