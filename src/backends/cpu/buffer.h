// Memory that the CPU device hands out, and that programs are bound to.
#pragma once
#include <cstddef>

struct gimbal_buffer {
  unsigned char* data;
  size_t mapped;         // bytes from mmap; 0: from aligned_alloc
  bool adopted = false;  // memory of somebody else's, which is only read
};
