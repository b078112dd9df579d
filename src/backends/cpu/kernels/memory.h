// Unaligned reads and writes of plain values. Like all kernel headers, included inside the variant's
// namespace.
#pragma once

template <class T>
inline T read(const void* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void write(void* p, T v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// Prefetches the lines of a one-row product into the second-level cache: far enough ahead for the memory's
// latency; lines pending in the first level would block others. One by one between other work, because the
// number of pending lines is limited.
constexpr int kAhead = 6144;
template <int Bytes, int Locality = 2>
inline void fetch_ahead(const uint8_t* p) {
  for (int i = 0; i < Bytes; i += 64) __builtin_prefetch(p + kAhead + i, 0, Locality);
}
// Prefetches lines `from` to `to` - 1, counted from p.
inline void fetch_lines(const uint8_t* p, int from, int to) {
  for (int i = from; i < to; i++) __builtin_prefetch(p + kAhead + 64 * i, 0, 2);
}
