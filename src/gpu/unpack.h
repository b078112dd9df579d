// GPU kernels are stored compressed in programs (scripts/build/pack_modules.py), which makes plugins much
// smaller.
#pragma once
#include <map>
#include <vector>

#include "gpu/runtime.h"

namespace gimbal::gpu {

// Decompresses kernels on demand, each module once. Not thread-safe.
class Unpacker {
 public:
  // Returns `code` as Runtime::load needs it. The bytes live as long as this object; kernels of one module
  // share them. Code that is not packed is returned unchanged. Errors: Invalid if the bytes are damaged.
  Failure unpack(const KernelCode& code, KernelCode* out);

 private:
  Failure unpack(std::span<const uint8_t>& bytes);
  std::map<const uint8_t*, std::vector<uint8_t>> modules_;  // by the address of the packed bytes
};

}  // namespace gimbal::gpu
