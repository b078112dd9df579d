// Kernels lie packed in programs (scripts/pack_modules.py): unpacked they would be most of a plugin.
#pragma once
#include <map>
#include <vector>

#include "gpu/runtime.h"

namespace gimbal::simt {

// Unpacks what is asked for, each module once. For one thread at a time.
class Unpacker {
 public:
  // `code` as Runtime::load wants it. Its bytes live as long as this object, and kernels that share a module
  // share them. What is not packed is given back as it is. Errors: Invalid, when the bytes are damaged.
  Failure unpack(const KernelCode& code, KernelCode* out);

 private:
  Failure unpack(std::span<const uint8_t>& bytes);
  std::map<const uint8_t*, std::vector<uint8_t>> modules_;  // by where they lie packed
};

}  // namespace gimbal::simt
