// Replaces operator new in an executable: included by the one file of a test, which defines allocating(). Not
// inlined: g++ 12 would take the pair malloc and free for a mismatch.
#pragma once
#include <cstdlib>
#include <new>

static void allocating(size_t bytes);  // before each allocation; may throw std::bad_alloc

[[gnu::noinline]] void* operator new(size_t n) {
  allocating(n);
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n, const std::nothrow_t&) noexcept {
  try {
    return operator new(n);
  } catch (const std::bad_alloc&) { return nullptr; }
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
