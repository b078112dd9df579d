// Moving what is read once and written once: asked for ahead of time, and written past the caches, which
// would first fetch every line that is about to be overwritten.
#pragma once
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

namespace gimbal::packed {

// Asks for `n` bytes that will be read soon. Any address will do.
inline void ask_for(const uint8_t* p, int64_t n) {
  for (int64_t i = 0; i < n; i += 64) __builtin_prefetch(p + i);
}

// Copies n bytes, a multiple of 64; what other threads see of them waits for written().
inline void write_through(uint8_t* to, const uint8_t* from, int64_t n) {
#ifdef __SSE2__
  if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    for (int64_t i = 0; i < n; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    return;
  }
#endif
  std::memcpy(to, from, size_t(n));
}

// Everything written so far is there for whoever synchronizes with this thread from now on.
inline void written() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace gimbal::packed
