// One op in a realistic shape, recorded several times over different memory: what the kernel benchmark runs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "ops/op_def.h"
#include "program/program.h"

namespace gimbal {

// An input that the host writes before anything runs.
struct SetupInput {
  uint16_t value;
  std::vector<int32_t> whole;  // what an i32 input holds; f32 inputs get random numbers of about 1
};

struct KernelSetup {
  Program program;                // without ops: those below are its ops
  std::vector<gimbal_op> before;  // what the tested ops need: activations quantized, caches written to
  std::vector<gimbal_op> tested;  // the op to measure, over and over
  std::vector<SetupInput> inputs;
  std::string shape;  // for people: "2048 x 8192"
  // Ops over caches: the position of the first row, and the input that says where to write.
  int begin = 0;
  std::optional<uint16_t> position;
};

// `kind` over `format`, for up to `rows` rows. Ops that read weights or a cache are recorded as often as it
// takes to go over `bytes` of memory; weights and caches lie in the same places whatever `rows` is. Shapes:
// OpCheck::bench.
Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, DType format, int rows, uint64_t bytes);
// The same for a shape of the caller's.
Result<KernelSetup> set_up_kernel(const Device& device, OpKind kind, const Bench& shape, int rows,
                                  uint64_t bytes);

}  // namespace gimbal
