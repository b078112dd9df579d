// The kernels of a table as a device gets them: for tests that look at what was built.
#pragma once
#include <gtest/gtest.h>

#include "gpu/unpack.h"

namespace gimbal::test {

// What cannot be unpacked fails the test, and is empty. The bytes live as long as the program.
inline gpu::KernelCode unpacked(const gpu::KernelCode& code) {
  static gpu::Unpacker unpacker;
  gpu::KernelCode out;
  if (gpu::Failure f = unpacker.unpack(code, &out)) ADD_FAILURE() << f.text, out = {};
  return out;
}

inline std::vector<gpu::KernelCode> unpacked(std::span<const gpu::KernelCode> table) {
  std::vector<gpu::KernelCode> all;
  for (const gpu::KernelCode& code : table) all.push_back(unpacked(code));
  return all;
}

}  // namespace gimbal::test
