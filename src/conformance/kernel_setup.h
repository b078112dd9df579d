// The program of a kernel benchmark: one op in a realistic shape, recorded over different memory.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "ops/op_def.h"
#include "program/program.h"

namespace gimbal {

// An input that the host writes before the first run.
struct SetupInput {
  uint16_t value;
  std::vector<int32_t> whole;  // contents of an i32 input; f32 inputs get random numbers of about 1
};

struct KernelSetup {
  Program program;                // without ops: they are below
  std::vector<gimbal_op> before;  // preparation of the tested ops: quantizes activations, fills caches
  std::vector<gimbal_op> tested;  // the op to measure, repeated
  std::vector<SetupInput> inputs;
  std::string shape;  // for the report: "2048 x 8192"
  // Ops over caches: the position of the first row, and the input with the write positions.
  int begin = 0;
  std::optional<uint16_t> position;
};

// `kind` over `format`, for up to `rows` rows. Ops that read weights or
// a cache are repeated until they cover `bytes` of memory; the locations
// of weights and caches do not depend on `rows`. Shapes: OpCheck::bench.
Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, DType format, int rows, uint64_t bytes);
// The same for a given shape.
Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, const Bench& shape, int rows,
                                  uint64_t bytes);

}  // namespace gimbal
