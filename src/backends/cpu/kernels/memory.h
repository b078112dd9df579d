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
