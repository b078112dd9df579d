#include "backends/cpu/compiled_program.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "backends/cpu/layout.h"

namespace gimbal::cpu {
namespace {

constexpr size_t kMapFrom = 1 << 20;  // larger buffers are mapped, with huge pages if the system has them

}  // namespace

gimbal_buffer* new_buffer(size_t n) {
  auto b = std::make_unique<gimbal_buffer>(gimbal_buffer{nullptr, 0});
  if (n >= kMapFrom) {
    b->mapped = size_t(up(int64_t(n), 1 << 21));
    void* p = mmap(nullptr, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, b->mapped, MADV_HUGEPAGE);
    b->data = static_cast<unsigned char*>(p);
  } else {
    const size_t size = size_t(up(int64_t(std::max<size_t>(n, 1)), 64));
    b->data = static_cast<unsigned char*>(std::aligned_alloc(64, size));
    if (!b->data) throw std::bad_alloc();
    memset(b->data, 0, size);
  }
  return b.release();
}

void delete_buffer(gimbal_buffer* b) {
  if (b->mapped) munmap(b->data, b->mapped);
  else if (!b->adopted) std::free(b->data);
  delete b;
}

}  // namespace gimbal::cpu
