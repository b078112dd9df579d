// Memory of the CPU device, bound to programs.
#pragma once
#include <cstddef>

struct gimbal_buffer {
  unsigned char* data;
  size_t mapped;         // bytes from mmap; 0: from aligned_alloc
  bool adopted = false;  // the caller's memory, read only
};

namespace gimbal::cpu {

// At least n bytes, aligned to 64, of zeros. Throws std::bad_alloc.
gimbal_buffer* new_buffer(size_t n);
void delete_buffer(gimbal_buffer*);

}  // namespace gimbal::cpu
