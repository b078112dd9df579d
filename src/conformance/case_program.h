// A conformance case as a program: its op, preceded by the writes that fill its caches, over memory that a
// check can guard.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "ops/cases.h"
#include "program/program.h"

namespace gimbal {

inline constexpr size_t kGuard = 256;  // guard bytes after every buffer and before the output
inline constexpr unsigned char kUntouched = 0xab;

struct CaseProgram {
  Program program;
  std::vector<uint16_t> inputs;  // value of each case input; caches: of the rows to be written
  std::vector<uint64_t> memory;  // of each input: where its bytes begin in its slot
  std::optional<uint16_t> written_position, written_sequence;  // of the rows of caches
  uint16_t out = 0;
  std::optional<uint16_t> state;
  std::optional<size_t> written;  // the input that the op writes to: it lies in the output slot
  gimbal_step step;
};

// `extent`: the step number that counts the rows. The other one is set to the capacity, so that a kernel that
// reads the wrong one is detected.
Result<CaseProgram> set_up(const Device& device, const Case& c, gimbal_extent extent);

}  // namespace gimbal
