// The kernels of a table as a device gets them: for tests that look at what was built.
#pragma once
#include <gtest/gtest.h>

#include "gpu/unpack.h"

namespace gimbal::test {

// What cannot be unpacked fails the test, and is empty. The bytes live as long as the program.
inline simt::KernelCode unpacked(const simt::KernelCode& code) {
  static simt::Unpacker unpacker;
  simt::KernelCode out;
  if (simt::Failure f = unpacker.unpack(code, &out)) ADD_FAILURE() << f.text, out = {};
  return out;
}

inline std::vector<simt::KernelCode> unpacked(std::span<const simt::KernelCode> table) {
  std::vector<simt::KernelCode> all;
  for (const simt::KernelCode& code : table) all.push_back(unpacked(code));
  return all;
}

}  // namespace gimbal::test
