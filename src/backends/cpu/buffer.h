// Memory of the CPU device, bound to programs.
#pragma once
#include <cstddef>

struct gimbal_buffer {
  unsigned char* data;
  size_t mapped;         // bytes from mmap; 0: from aligned_alloc
  bool adopted = false;  // the caller's memory, read only
};
